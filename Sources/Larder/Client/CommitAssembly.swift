import Wire

/// Assembles commits from the frames of a watch.
///
/// A commit is complete when the server has sent everything up to its revision; until then its changes are kept here. A
/// plain value that does no I/O.
struct CommitAssembly {
  private var ready: [Commit] = []
  /// The index of the first commit of `ready` that was not taken.
  private var next = 0
  private var incomplete: [Change] = []
  private var incompleteRevision: UInt64 = 0
  /// The revision up to which everything has arrived; nil before the first frame.
  private(set) var through: UInt64?
  /// The newest revision whose changes are missing, if the server could not keep them for the watch.
  private(set) var lostRevision: UInt64?
  /// The incarnation of the store; nil before the first frame, or if the server doesn't tell.
  private(set) var incarnation: UInt64?
  private let keysOnly: Bool

  init(keysOnly: Bool) {
    self.keysOnly = keysOnly
  }

  /// Removes and returns the first complete commit.
  mutating func popFirst() -> Commit? {
    guard next < ready.count else { return nil }
    defer { next += 1 }
    return ready[next]
  }

  /// Adds the body of a frame.
  /// - Precondition: All complete commits have been removed.
  /// - Returns: Whether the body is well-formed, and continues where the previous one ended.
  mutating func add(_ body: RawSpan) -> Bool {
    ready.removeAll(keepingCapacity: true)
    next = 0
    guard let through = body.revision(at: 0), through >= self.through ?? 0 else { return false }
    var offset = ChangeRecord.throughSize
    while offset < body.byteCount {
      guard let record = ChangeRecord(body, at: offset) else { return false }
      offset = record.end
      if record.kind == .lost {
        lostRevision = record.revision
        break
      }
      if record.kind == .incarnation {
        incarnation = record.revision
        continue
      }
      guard record.revision > self.through ?? 0, record.revision >= incompleteRevision,
        let change = Change(record, in: body, keysOnly: keysOnly)
      else { return false }
      if record.revision != incompleteRevision { finishCommit() }
      incompleteRevision = record.revision
      incomplete.append(change)
    }
    if incompleteRevision <= through { finishCommit() }
    self.through = through
    return true
  }

  /// Discards the changes of an incomplete commit: another connection sends it again.
  mutating func restart() {
    incomplete = []
    incompleteRevision = 0
  }

  private mutating func finishCommit() {
    if !incomplete.isEmpty { ready.append(Commit(revision: incompleteRevision, changes: incomplete)) }
    restart()
  }
}
