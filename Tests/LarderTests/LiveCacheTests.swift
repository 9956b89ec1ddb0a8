import DataSources
import Platform
import Testing

@testable import Larder

/// What a live cache keeps while calls and changes overtake each other, without any I/O.
@Suite struct LiveCacheTests {
  private final class Text: Sendable {
    let text: String
    init(_ text: String) { self.text = text }
  }

  private func liveCache(prefix: String = "", limit: Int = 100) -> LiveCache {
    let cache = LiveCache(prefix: prefix, limit: limit)
    cache.beginTrack(after: 0)
    cache.trust(until: .max, on: cache.connect())
    return cache
  }

  private func text(_ key: String, in cache: LiveCache) -> String? {
    (cache.trustedContent(of: key) as? Text)?.text
  }

  /// Ends a call with what it has read.
  private func end(_ key: String, _ text: String, _ revision: UInt64, _ track: UInt64, in cache: LiveCache) {
    cache.store(.init(revision: revision, expiry: .max, content: Text(text)), for: key, readOn: track)
    cache.end([key])
  }

  private func put(_ key: String, _ revision: UInt64) -> Commit {
    Commit(revision: revision, changes: [.put(Entry(key: key, value: .single([]), revision: revision))])
  }

  @Test func `a change removes older entries, and keeps those that a reader has seen before its message`() {
    let cache = liveCache()
    end("a", "three", 3, cache.begin(["a"]), in: cache)
    cache.apply(put("b", 9))
    cache.apply(put("a", 2))
    cache.apply(put("a", 3))
    #expect(text("a", in: cache) == "three")
    cache.apply(put("a", 4))
    #expect(text("a", in: cache) == nil && cache.count == 0)
  }

  @Test func `a slow reader does not store what has changed meanwhile`() {
    let cache = liveCache()
    let slow = cache.begin(["a"])
    cache.apply(put("a", 4))
    let fast = cache.begin(["a"])
    end("a", "four", 4, fast, in: cache)
    end("a", "three", 3, slow, in: cache)
    #expect(text("a", in: cache) == "four")
    let slower = cache.begin(["a"])
    cache.apply(put("a", 6))
    end("a", "five", 5, slower, in: cache)
    #expect(text("a", in: cache) == nil)
    end("a", "six", 6, cache.begin(["a"]), in: cache)
    #expect(text("a", in: cache) == "six")
  }

  @Test func `an absent entry is cached until it is written`() {
    let cache = liveCache()
    let slow = cache.begin(["a"])
    end("a", "none", 0, cache.begin(["a"]), in: cache)
    #expect(text("a", in: cache) == "none")
    cache.apply(put("a", 1))
    #expect(text("a", in: cache) == nil)
    end("a", "none", 0, slow, in: cache)
    #expect(text("a", in: cache) == nil)
    // A reader that was overtaken by a writer doesn't hide what was written.
    let overtaken = cache.begin(["a"])
    end("a", "two", 2, cache.begin(["a"]), in: cache)
    end("a", "none", 0, overtaken, in: cache)
    #expect(text("a", in: cache) == "two")
  }

  @Test func `a write of this process counts before its message arrives`() {
    let cache = liveCache()
    end("a", "one", 1, cache.begin(["a"]), in: cache)
    let reader = cache.begin(["a"])
    let writer = cache.begin(["a"])
    cache.didWrite(["a"], revision: 2)
    end("a", "two", 2, writer, in: cache)
    end("a", "one", 1, reader, in: cache)
    #expect(text("a", in: cache) == "two")
    cache.apply(put("a", 2))
    #expect(text("a", in: cache) == "two")
    // The reply to a deletion has no revision.
    let another = cache.begin(["a"])
    cache.didWrite(["a"], revision: nil)
    end("a", "two", 2, another, in: cache)
    #expect(text("a", in: cache) == nil)
  }

  @Test func `a deletion of everything removes older entries, and keeps slow readers from storing them`() {
    let cache = liveCache()
    for (key, revision) in [("a", 1), ("b", 2), ("c", 8)] as [(String, UInt64)] {
      end(key, key, revision, cache.begin([key]), in: cache)
    }
    let slow = cache.begin(["d"])
    cache.apply(Commit(revision: 7, changes: [.deleteAll]))
    end("d", "d", 3, slow, in: cache)
    #expect(["a", "b", "c", "d"].map { text($0, in: cache) } == [nil, nil, "c", nil])
    let own = cache.begin(["e"])
    cache.didDeleteAll()
    end("e", "e", 9, own, in: cache)
    #expect(cache.count == 0)
  }

  @Test func `a value read before the watch caught up isn't cached`() {
    let cache = LiveCache(prefix: "", limit: 100)
    end("a", "early", 1, cache.begin(["a"]), in: cache)
    let before = cache.begin(["a"])
    cache.beginTrack(after: 0)
    end("a", "before", 1, before, in: cache)
    #expect(cache.count == 0)
    let during = cache.begin(["a"])
    cache.endTrack()
    end("a", "during", 1, during, in: cache)
    #expect(cache.count == 0)
  }

  @Test func `a cache is not trusted without a connection, and a late reply doesn't change that`() {
    let cache = liveCache()
    let connection = cache.connect()
    end("a", "one", 1, cache.begin(["a"]), in: cache)
    cache.disconnect()
    cache.trust(until: .max, on: connection)
    #expect(text("a", in: cache) == nil && !cache.isTrusted)
    #expect((cache.content(of: "a") as? Text)?.text == "one")
    cache.trust(until: .max, on: cache.connect())
    #expect(text("a", in: cache) == "one")
    cache.trust(until: monotonicNanoseconds(), on: cache.connect())
    #expect(text("a", in: cache) == nil && !cache.isTrusted)
  }

  @Test func `an entry that has expired is absent`() {
    let cache = liveCache()
    let track = cache.begin(["a"])
    cache.store(.init(revision: 1, expiry: monotonicNanoseconds(), content: Text("a")), for: "a", readOn: track)
    cache.end(["a"])
    #expect(cache.count == 1)
    #expect(text("a", in: cache) == nil && cache.content(of: "a") == nil && cache.count == 0)
  }

  @Test func `the cache evicts keys that aren't used`() {
    var slots = CacheSlots(limit: 3)
    func entry(_ revision: UInt64) -> CacheSlots.Entry { .init(revision: revision, expiry: .max, content: Text("")) }
    for number in 1...3 as ClosedRange<UInt64> { slots.insert(entry(number), for: EntryKey("k\(number)")) }
    for number in 4...1_000 as ClosedRange<UInt64> {
      #expect(slots.use(EntryKey("k2"), now: 0) != nil)
      slots.insert(entry(number), for: EntryKey("k\(number)"))
      #expect(slots.count == 3)
    }
    slots.remove(EntryKey("k2"))
    slots.remove(EntryKey("k2"))
    #expect(slots.count == 2)
    slots.insert(entry(5), for: EntryKey("k5"))
    slots.removeAll(olderThan: 1_000)
    #expect(slots.count == 1 && slots.use(EntryKey("k1000"), now: 0) != nil)
  }

  @Test func `keys are equal if their bytes are`() {
    let cache = liveCache(prefix: "\u{E9}")
    end("\u{E9}", "composed", 1, cache.begin(["\u{E9}"]), in: cache)
    #expect(text("e\u{301}", in: cache) == nil && text("\u{E9}", in: cache) == "composed")
    #expect(cache.covers("\u{E9}t") && !cache.covers("e\u{301}t"))
  }
}
