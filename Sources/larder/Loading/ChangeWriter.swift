import Larder

/// Makes the changes of another store in a store: the commits of a watch, or the lines that `larder watch` prints of them.
/// The changes of a commit are made in one step, also if their lines arrive in parts; several commits that have arrived can
/// share a step.
struct ChangeWriter {
  /// What a step has fits into the smallest frame limit that a server can be configured with, unless it is one commit.
  private static let maxStepBytes = 60_000
  private static let maxStepCount = 1_000
  /// The maximum number of changes of a commit.
  private static let maxCommitCount = 65_536

  private let store: RemoteStore
  private var parser = ChangeLineParser()
  /// The changes that are not made yet.
  private var changes: [ChangeLineParser.Line] = []
  /// Where each whole commit ends in `changes`.
  private var commitEnds: [Int] = []
  private var byteCount = 0
  /// The number of `changes` that belong to whole commits.
  private var completeCount: Int { commitEnds.last ?? 0 }
  /// The revision of the last whole commit in `changes`.
  private var completeRevision: UInt64?
  /// The revision in the other store up to which all changes are made; nil before the first.
  private(set) var madeRevision: UInt64?

  init(_ store: RemoteStore) { self.store = store }

  /// A Boolean value that indicates whether the last commit's end is still missing.
  var isInsideCommit: Bool { changes.count > completeCount }

  /// A Boolean value that indicates whether it is time to make the changes so far.
  var isFull: Bool { completeCount >= Self.maxStepCount || (completeCount > 0 && byteCount >= Self.maxStepBytes) }

  /// Reads a line.
  mutating func add(_ line: Span<UInt8>) throws(LineError) {
    let (change, revision, hasMore) = try parser.parse(line)
    if case .end = change {
      guard !isInsideCommit else { throw LineError("the commit before it is not complete") }
    } else {
      changes.append(change)
      byteCount += line.count
    }
    if !hasMore { endCommit(revision) }
  }

  private mutating func endCommit(_ revision: UInt64) {
    commitEnds.append(changes.count)
    completeRevision = revision
  }

  /// Adds those changes of a commit that concern keys which a function accepts.
  mutating func add(_ commit: Commit, of isIncluded: (String) -> Bool) {
    for change in commit.changes {
      switch change {
      case .put(let entry):
        guard isIncluded(entry.key) else { continue }
        let write = Write(entry.key, entry.value, expiresIn: entry.expiresIn)
        changes.append(.put(write))
        byteCount += write.byteCount
      case .delete(let key):
        if isIncluded(key) { changes.append(.delete(key)) }
      case .deleteAll: changes.append(.deleteAll)
      }
    }
    endCommit(commit.revision)
  }

  /// Makes the changes of all whole commits so far.
  mutating func flush() async throws(LarderError) {
    guard let revision = completeRevision.take() else { return }
    var batch = WriteBatch()
    var start = 0
    for end in commitEnds {
      if batch.count + end - start > Self.maxCommitCount {
        _ = try await store.apply(batch)
        batch = WriteBatch()
      }
      for change in changes[start..<end] {
        switch change {
        case .put(let write): batch.put(write)
        case .delete(let key): batch.delete(key)
        case .deleteAll:
          // What precedes it has no effect.
          batch = WriteBatch()
          _ = try await store.deleteAll()
        case .end: break
        }
      }
      start = end
    }
    if !batch.isEmpty { _ = try await store.apply(batch) }
    changes.removeSubrange(..<completeCount)
    commitEnds.removeAll(keepingCapacity: true)
    (byteCount, madeRevision) = (0, revision)
  }
}
