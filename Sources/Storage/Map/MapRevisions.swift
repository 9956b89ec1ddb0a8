/// The revisions that a map reports, and its count of changes. Owned by one `EntryMap`.
package struct MapRevisions {
  /// The revision of the last commit, or the last one that was skipped.
  package private(set) var last: UInt64 = 0
  /// The revision of the last commit that removed an entry or set an expiry. A reader that finds an entry missing
  /// depends on no later commit.
  package private(set) var lastRemoval: UInt64 = 0
  /// The revision of the last commit that added a new key. A reader that counts entries depends on this commit and on
  /// the last removal, and on no later one.
  package private(set) var lastInsertion: UInt64 = 0
  /// The last skipped revision, and that of the last commit before; nil if none was skipped.
  private var skipped: (through: UInt64, after: UInt64)?
  /// The number of changes so far. Two snapshots taken at the same count show the same state.
  private(set) var changeCount: UInt64 = 0

  /// Makes this revision the last one, unless a later one is.
  @inline(__always)
  mutating func advance(to revision: UInt64) { last = max(last, revision) }

  /// Notes a change, so that the next snapshot is a new one.
  @inline(__always)
  mutating func didChange() { changeCount &+= 1 }

  @inline(__always)
  mutating func didRemove(in commit: UInt64) { lastRemoval = commit }

  @inline(__always)
  mutating func didInsert(in commit: UInt64) { lastInsertion = commit }

  /// Exchanges the last revisions for others, because a slice of a large commit begins or ends.
  mutating func exchange(for hidden: inout MapRevisions) {
    swap(&last, &hidden.last)
    swap(&lastRemoval, &hidden.lastRemoval)
    swap(&lastInsertion, &hidden.lastInsertion)
  }

  /// The revision of the last commit.
  var lastCommit: UInt64 {
    if let skipped, skipped.through == last { skipped.after } else { last }
  }

  /// Skips revisions that lost commits may have had.
  /// - Parameter commit: The revision of the last commit.
  mutating func skip(through revision: UInt64, after commit: UInt64) {
    guard revision > last else { return }
    skipped = (revision, commit)
    last = revision
  }
}
