import Larder

/// Makes one store equal to another while clients write to that one: range after range in the order of the keys, and the
/// changes of the ranges that are copied already.
///
/// Reads a range only after the changes before it are made, so that a copied key is never older than the changes that are
/// still to come, and the server has to keep few of them. A range that is equal in both stores is left as it is: to copy
/// again continues a copy that was interrupted.
struct StoreCopy {
  /// How many entries, and bytes of them, a range has at most, unless it is one entry.
  private static let maxRangeCount = 4_096
  private static let maxRangeBytes = 4 << 20
  /// How often keys are compared again that clients keep writing.
  private static let maxComparisonCount = 50

  /// The first keys, which are copied.
  private enum CopiedKeys {
    case through(String?)
    case all

    func contains(_ key: String) -> Bool {
      switch self {
      case .all: true
      case .through(let last): last.map { !StoreCopy.isBefore($0, key) } ?? false
      }
    }
  }

  private let source: RemoteStore
  private let target: RemoteStore
  private var commits: RemoteStore.Watch.AsyncIterator
  private var changes: ChangeWriter
  private var copied = CopiedKeys.through(nil)
  /// The source's revision up to which the target has all changes of copied keys.
  private(set) var revision: UInt64
  /// The numbers of entries that were compared, and of those that were written or deleted because they were different.
  private(set) var comparedCount = 0
  private(set) var changedCount = 0
  private(set) var byteCount = 0

  /// Begins to follow the changes of the source. Copies nothing yet.
  /// - Throws: `CommandFailure` if both are the same store.
  init(of source: RemoteStore, to target: RemoteStore) async throws {
    (self.source, self.target) = (source, target)
    changes = ChangeWriter(target)
    commits = source.watch().makeAsyncIterator()
    revision = try await commits.start()
    if let incarnation = commits.incarnation, try await target.stats()["incarnation"] == incarnation {
      throw CommandFailure(.usage, "a store can't be copied to itself; nothing was changed")
    }
  }

  /// Copies the next range.
  /// - Returns: Whether another one follows.
  mutating func copyRange() async throws -> Bool {
    guard case .through(let cursor) = copied else { return false }
    let range = try await KeyRange(after: cursor, source, target)
    var writer = BatchWriter(target, itemNoun: .copy)
    for entry in range.missing {
      let write = Write(entry.key, entry.value, expiresIn: entry.expiresIn)
      let partition = BatchWriter.partition(of: write.key)
      if writer.isFull(partition, for: write.byteCount) { try await writer.send(partition) }
      writer.add(write, byteCount: write.byteCount, number: 0, to: partition)
      byteCount += write.byteCount
    }
    try await writer.finish()
    if !range.surplus.isEmpty { _ = try await target.deleteMany(range.surplus) }
    comparedCount += range.count
    changedCount += range.missing.count + range.surplus.count
    copied = range.last.map { .through($0) } ?? .all
    try await catchUp()
    return range.last != nil
  }

  /// Makes the changes that the source has now, as far as they are of copied keys.
  /// - Throws: `SourceLost` if the source is another store by now, or its server no longer keeps all changes.
  mutating func catchUp() async throws {
    let source = try await source.stats()
    guard source["incarnation"] == commits.incarnation else { throw SourceLost() }
    let end = source["revision"] ?? revision
    while revision < end, let commit = try await nextCommit() {
      changes.add(commit) { copied.contains($0) }
      revision = commit.revision
      if changes.isFull { try await changes.flush() }
    }
    try await changes.flush()
  }

  struct SourceLost: Error {}

  private mutating func nextCommit() async throws -> Commit? {
    do throws(LarderError) { return try await commits.next() } catch {
      throw error.kind == .changesLost ? SourceLost() : error
    }
  }

  /// Compares all entries of both stores, although clients may be writing.
  /// - Returns: The keys whose entries are different for another reason than that.
  mutating func differences() async throws -> [String] {
    var different: [String] = []
    var cursor: String?
    repeat {
      let range = try await KeyRange(after: cursor, source, target)
      different += try await confirmedDifferences(of: range.missing.map(\.key) + range.surplus)
      cursor = range.last
    } while cursor != nil
    return different
  }

  /// Returns those of the keys whose entries are still different once the target has all changes that were made to them.
  private mutating func confirmedDifferences(of keys: [String]) async throws -> [String] {
    var (keys, different): ([String], [String]) = (keys, [])
    for _ in 0..<Self.maxComparisonCount where !keys.isEmpty {
      let before = try await source.getMany(keys)
      try await catchUp()
      let copies = try await target.getMany(keys)
      let now = try await source.getMany(keys)
      var changing: [String] = []
      for (index, key) in keys.enumerated() where !Self.areEqual(now[index], copies[index]) {
        if now[index]?.revision == before[index]?.revision { different.append(key) } else { changing.append(key) }
      }
      keys = changing
    }
    return different
  }

  /// Two stores count the time until an entry expires from different moments.
  private static let expiryTolerance = Duration.seconds(5)

  fileprivate static func areEqual(_ entry: Entry?, _ copy: Entry?) -> Bool {
    guard let entry else { return copy.map { $0.expiresIn.map { $0 < expiryTolerance } ?? false } ?? true }
    guard let copy, entry.value == copy.value else { return false }
    guard let expiry = entry.expiresIn, let ofCopy = copy.expiresIn else {
      return entry.expiresIn == nil && copy.expiresIn == nil
    }
    return abs(expiry - ofCopy) < expiryTolerance
  }

  private static func abs(_ duration: Duration) -> Duration { max(duration, .zero - duration) }

  fileprivate static func isBefore(_ key: String, _ other: String) -> Bool {
    key.utf8.lexicographicallyPrecedes(other.utf8)
  }

  /// What two stores have in a range of keys.
  private struct KeyRange {
    /// The number of entries in the source.
    private(set) var count = 0
    /// The source's entries that the target doesn't have like that.
    private(set) var missing: [Entry] = []
    /// The keys that only the target has.
    private(set) var surplus: [String] = []
    /// The last key of the range; nil if no key follows it in either store.
    let last: String?

    /// Reads the range after a key, the next part of both stores.
    init(after cursor: String?, _ source: RemoteStore, _ target: RemoteStore) async throws {
      let (entries, end) = try await Self.entries(of: source, after: cursor)
      let (copies, endOfCopies) = try await Self.entries(of: target, after: cursor)
      last = [end, endOfCopies].compactMap(\.self).min { StoreCopy.isBefore($0, $1) }
      var others = copies[...]
      for entry in entries {
        if let last, StoreCopy.isBefore(last, entry.key) { break }
        count += 1
        while let other = others.first, StoreCopy.isBefore(other.key, entry.key) {
          surplus.append(other.key)
          others.removeFirst()
        }
        let copy = others.first?.key == entry.key ? others.popFirst() : nil
        if !StoreCopy.areEqual(entry, copy) { missing.append(entry) }
      }
      for other in others {
        if let last, StoreCopy.isBefore(last, other.key) { break }
        surplus.append(other.key)
      }
    }

    /// - Returns: The first entries after a key, and the key of the last of them; nil if it is the last in the store.
    private static func entries(
      of store: RemoteStore, after cursor: String?
    ) async throws -> (entries: [Entry], last: String?) {
      var (entries, byteCount): ([Entry], Int) = ([], 0)
      for try await entry in store.all(after: cursor) {
        // One more than the range has tells whether another range follows.
        if entries.count == maxRangeCount || byteCount >= maxRangeBytes { return (entries, entries.last?.key) }
        byteCount += entry.key.utf8.count + entry.value.byteCount
        entries.append(entry)
      }
      return (entries, nil)
    }
  }
}
