/// Decides which segments are worth compacting.
///
/// A log may be twice as large as its live entries, plus one segment. Compaction then writes fewer bytes than it frees.
/// On a full disk, everything that frees an eighth of a segment is worth it, and what needs the least space comes first.
struct CompactionPolicy {
  private let segments: [SealedSegment]
  /// The size of a full segment, in bytes.
  private let segmentSize: Int
  private let isShortOfSpace: Bool

  init(_ segments: [SealedSegment], segmentSize: Int, isShortOfSpace: Bool) {
    self.segments = segments
    self.segmentSize = segmentSize
    self.isShortOfSpace = isShortOfSpace
  }

  func isTooLarge(live: Int, logByteCount: Int) -> Bool {
    !segments.isEmpty && logByteCount > (isShortOfSpace ? live + live / 8 : 2 * live + segmentSize)
  }

  /// Returns the neighboring segments to compact next; nil if none are worth it.
  func run(live: Int, logByteCount: Int) -> Range<Int>? {
    guard isTooLarge(live: live, logByteCount: logByteCount) else { return nil }
    if isShortOfSpace {
      let worthwhile = segments.indices.filter { retainedFraction($0) <= 0.875 }
      let smallest = worthwhile.min { retainedByteCount($0) < retainedByteCount($1) }
      return smallest.map { $0..<$0 + 1 } ?? tombstoneRun()
    }
    let best = segments.indices.min { retainedFraction($0) < retainedFraction($1) }
    if let best, retainedFraction(best) <= 0.75 { return expanded(best..<best + 1) }
    return tombstoneRun()
  }

  /// Returns the fraction of a segment that a compaction would retain, as far as is known.
  private func retainedFraction(_ index: Int) -> Double {
    let segment = segments[index]
    if segment.hasDamagedValue { return .infinity }
    let tombstones = hasObsoleteTombstones(index) ? 0 : segment.tombstoneByteCount ?? 0
    return Double(segment.liveByteCount + tombstones + SegmentHeader.byteCount + SegmentTrailer.byteCount)
      / Double(max(1, segment.byteCount))
  }

  private func retainedByteCount(_ index: Int) -> Int {
    Int(retainedFraction(index) * Double(segments[index].byteCount))
  }

  /// Returns whether the tombstones of a segment have nothing left to remove in the segments before it.
  private func hasObsoleteTombstones(_ index: Int) -> Bool {
    segments[..<index].allSatisfy { $0.sweptRevision >= segments[index].lastRevision }
  }

  /// Expands a run by neighbors that are small or mostly dead, as long as the retained bytes fit into one segment.
  private func expanded(_ start: Range<Int>) -> Range<Int> {
    var run = start
    var total = retainedByteCount(start.lowerBound)
    func canInclude(_ index: Int) -> Bool {
      guard segments.indices.contains(index), !segments[index].hasDamagedValue,
        total + retainedByteCount(index) <= segmentSize
      else { return false }
      return segments[index].byteCount <= segmentSize / 4 || retainedFraction(index) <= 0.5
    }
    while run.count < 16 {
      if canInclude(run.upperBound) {
        total += retainedByteCount(run.upperBound)
        run = run.lowerBound..<run.upperBound + 1
      } else if canInclude(run.lowerBound - 1) {
        total += retainedByteCount(run.lowerBound - 1)
        run = run.lowerBound - 1..<run.upperBound
      } else {
        break
      }
    }
    return run
  }

  /// Returns the first segment to sweep so that a segment with many tombstones can drop them; nil if there is no such
  /// segment.
  private func tombstoneRun() -> Range<Int>? {
    let last = segments.indices.last { (segments[$0].tombstoneByteCount ?? 0) * 4 > segments[$0].byteCount }
    guard let last else { return nil }
    let unswept = segments[..<last].firstIndex { $0.sweptRevision < segments[last].lastRevision } ?? last
    return segments[unswept].hasDamagedValue ? nil : unswept..<unswept + 1
  }

  /// Returns eight or more small neighbors, such as many starts leave behind; nil if there are fewer.
  func smallSegmentRun() -> Range<Int>? {
    if isShortOfSpace { return nil }
    var start = 0
    for index in segments.indices.reversed()
    where segments[index].byteCount > segmentSize / 8 || segments[index].hasDamagedValue {
      start = index + 1
      break
    }
    return segments.count - start >= 8 ? start..<min(segments.count, start + 16) : nil
  }
}

/// A scan of the live entries that finds out how much of each segment they are.
///
/// It goes by ranks, a few thousand at a time, while writes continue, so its result is an approximation. Owned by one
/// `LogMaintenance`.
struct LivenessScan {
  private static let ranksPerStep = 2_048

  /// The first revision of each segment, ascending.
  private let firstRevisions: [UInt64]
  /// The live bytes found in each segment.
  private(set) var liveByteCounts: [Int]
  private var rank = 0

  init(_ segments: [SealedSegment]) {
    firstRevisions = segments.map(\.firstRevision)
    liveByteCounts = segments.map { _ in 0 }
  }

  /// Returns the size of an entry as a record of its own.
  private static func byteCount(of entry: EntryView) -> Int {
    let extra = (entry.expiry == 0 ? 0 : 8) + (entry.valueByteCount < CommitBuffer.separatedByteCount ? 0 : 4)
    return unsafe CommitBuffer.recordHeaderByteCount + 8 + CommitBuffer.operationHeaderByteCount + extra
      + entry.key.count + entry.valueByteCount
  }

  /// Visits the next entries.
  /// - Returns: Whether there are more.
  mutating func step(_ map: borrowing EntryMap) -> Bool {
    let ranks = min(rank, map.order.count)..<min(rank + Self.ranksPerStep, map.order.count)
    rank = ranks.upperBound
    _ = map.order.visit(ranks, reverse: false, root: map.order.root, in: map.arena.records) { handle in
      add(map.record(handle).view)
      return true
    }
    return !ranks.isEmpty
  }

  private mutating func add(_ entry: EntryView) {
    var (low, high) = (0, firstRevisions.count)
    while low < high {
      let middle = (low + high) / 2
      if firstRevisions[middle] <= entry.revision { low = middle + 1 } else { high = middle }
    }
    if low > 0 { liveByteCounts[low - 1] += Self.byteCount(of: entry) }
  }
}
