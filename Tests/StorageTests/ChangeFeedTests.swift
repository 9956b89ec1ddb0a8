import Testing

@testable import Storage

@Suite struct ChangeFeedTests {
  private func append(to feed: inout ChangeFeed, _ revision: UInt64, size: Int = 10) {
    let (key, value) = (Array("k\(revision)".utf8), [UInt8](repeating: UInt8(revision & 255), count: size))
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        unsafe feed.append(.single, key, value, expiry: revision % 2, revision: revision)
      }
    }
  }

  private func revisions(_ feed: ChangeFeed, from offset: UInt64) -> [UInt64] {
    var found: [UInt64] = []
    feed.visit(from: offset) { change in
      #expect(unsafe Array(change.key) == Array("k\(change.revision)".utf8))
      #expect(unsafe change.value.allSatisfy { $0 == UInt8(change.revision & 255) })
      #expect(change.expiry == change.revision % 2)
      found.append(change.revision)
      return true
    }
    return found
  }

  @Test func `changes are found by their revision and read from any offset`() {
    var feed = ChangeFeed(after: 10, limit: 1 << 22, notifiesImmediately: true)
    #expect(feed.position(of: 11) == 0)
    // Several chunks, some with only one change.
    for revision in 11...400 as ClosedRange<UInt64> {
      append(to: &feed, revision, size: revision % 50 == 0 ? 100_000 : 900)
    }
    for revision in [11, 12, 49, 50, 51, 200, 399, 400] as [UInt64] {
      #expect(revisions(feed, from: feed.position(of: revision)) == Array(revision...400))
    }
    #expect(feed.position(of: 401) == feed.end)
    #expect(revisions(feed, from: feed.end).isEmpty)
  }

  @Test func `the oldest changes are dropped, but never those of the last commit`() {
    var feed = ChangeFeed(after: 0, limit: 200_000, notifiesImmediately: true)
    for revision in 1...1_000 as ClosedRange<UInt64> { append(to: &feed, revision, size: 1_000) }
    #expect(feed.lastDroppedRevision > 650 && feed.lastDroppedRevision < 850)
    #expect(feed.end - feed.start < 400_000)
    #expect(
      revisions(feed, from: feed.position(of: feed.lastDroppedRevision + 1))
        == Array(feed.lastDroppedRevision + 1...1_000))
    for _ in 0..<1_000 { append(to: &feed, 1_001, size: 1_000) }
    #expect(revisions(feed, from: feed.position(of: 1_001)).count == 1_000)
    #expect(feed.lastDroppedRevision < 1_001)
    for revision in 1_002...1_100 as ClosedRange<UInt64> { append(to: &feed, revision, size: 1_000) }
    #expect(feed.lastDroppedRevision == 1_001)
  }

  @Test func `a map keeps a feed while it is watched and for a while afterwards`() throws {
    var map = EntryMap()
    _ = map.beginWatch(limit: 1_000, notifiesImmediately: true)
    _ = map.beginWatch(limit: 1_000, notifiesImmediately: true)
    let key = Array("a".utf8)
    unsafe try map.put(key.span.bytes, key.span.bytes, revision: 1)
    map.endWatch()
    map.discardAbandonedFeed(now: 1_000_000)
    map.discardAbandonedFeed(now: 2_000_000)
    #expect(map.feed?.watcherCount == 1)
    map.endWatch()
    map.discardAbandonedFeed(now: 2_000_000)
    map.discardAbandonedFeed(now: 2_059_999)
    #expect(map.feed?.lastDroppedRevision == 0)
    // A watcher that returns restarts the clock.
    _ = map.beginWatch(limit: 1_000, notifiesImmediately: true)
    map.discardAbandonedFeed(now: 2_100_000)
    map.endWatch()
    map.discardAbandonedFeed(now: 2_200_000)
    #expect(map.feed != nil)
    map.discardAbandonedFeed(now: 2_260_000)
    #expect(map.feed == nil && !map.changes.isRecording)
  }
}
