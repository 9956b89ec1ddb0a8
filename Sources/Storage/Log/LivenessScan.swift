/// A walk over the live entries that finds out how much of each segment they are.
///
/// It goes by ranks, a few thousand at a time, while writes go on: what it finds is nearly right. Owned by one `LogEngine`.
struct LivenessScan {
  private static let stepCount = 2_048

  /// The first revision of each segment, ascending, and the live bytes found in it.
  private let firstRevisions: [UInt64]
  private(set) var liveBytes: [Int]
  private var rank = 0

  init(_ segments: [SealedSegment]) {
    firstRevisions = segments.map(\.firstRevision)
    liveBytes = segments.map { _ in 0 }
  }

  /// What an entry takes in a log, as a record of its own.
  static func byteCount(of entry: EntryView) -> Int {
    let extra = (entry.expiry == 0 ? 0 : 8) + (entry.valueByteCount < CommitBuffer.separatedByteCount ? 0 : 4)
    return unsafe CommitBuffer.recordHeaderByteCount + 8 + CommitBuffer.operationHeaderByteCount + extra
      + entry.key.count + entry.valueByteCount
  }

  /// Looks at the next entries.
  /// - Returns: whether there are more.
  mutating func step(_ map: borrowing EntryMap) -> Bool {
    let ranks = min(rank, map.order.count)..<min(rank + Self.stepCount, map.order.count)
    rank = ranks.upperBound
    _ = map.order.visit(ranks, reverse: false, root: map.order.root, in: map.arena) { handle in
      note(map.record(handle).view)
      return true
    }
    return !ranks.isEmpty
  }

  private mutating func note(_ entry: EntryView) {
    var (low, high) = (0, firstRevisions.count)
    while low < high {
      let middle = (low + high) / 2
      if firstRevisions[middle] <= entry.revision { low = middle + 1 } else { high = middle }
    }
    if low > 0 { liveBytes[low - 1] += Self.byteCount(of: entry) }
  }
}
