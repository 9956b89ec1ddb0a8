import Wire

/// Makes commits of the frames of a watch: a plain value that does no I/O.
///
/// A commit is whole once the server has told of everything up to its revision; what has come of one that is not waits.
struct CommitAssembly {
  private(set) var ready: [Commit] = []
  /// The first of `ready` that was not taken.
  private var next = 0
  private var unfinished: [Change] = []
  private var unfinishedRevision: UInt64 = 0
  /// Everything up to this revision has come; nil before the first frame.
  private(set) var through: UInt64?
  /// The newest revision of which something is missing, once the watch has lost track.
  private(set) var lostRevision: UInt64?
  private let keysOnly: Bool

  init(keysOnly: Bool) {
    self.keysOnly = keysOnly
  }

  mutating func popFirst() -> Commit? {
    guard next < ready.count else { return nil }
    defer { next += 1 }
    return ready[next]
  }

  /// Takes the body of a frame in.
  /// - Precondition: all that was ready has been taken.
  /// - Returns: whether it is of the form that a watch's frames have, and goes on where the ones before it ended.
  mutating func take(_ body: RawSpan) -> Bool {
    ready.removeAll(keepingCapacity: true)
    next = 0
    guard let through = body.integer(at: 0, as: UInt64.self), through >= self.through ?? 0 else { return false }
    var place = ChangeRecord.throughSize
    while place < body.byteCount {
      guard let record = ChangeRecord(body, at: place) else { return false }
      place = record.end
      if record.kind == .lost {
        lostRevision = record.revision
        break
      }
      guard record.revision > self.through ?? 0, record.revision >= unfinishedRevision,
        let change = Change(record, in: body, keysOnly: keysOnly)
      else { return false }
      if record.revision != unfinishedRevision { finish() }
      unfinishedRevision = record.revision
      unfinished.append(change)
    }
    if unfinishedRevision <= through { finish() }
    self.through = through
    return true
  }

  /// Forgets what has come of a commit that is not whole: another connection brings it anew.
  mutating func restart() {
    unfinished = []
    unfinishedRevision = 0
  }

  private mutating func finish() {
    if !unfinished.isEmpty { ready.append(Commit(revision: unfinishedRevision, changes: unfinished)) }
    restart()
  }
}
