/// Decides which segments are worth rewriting.
///
/// A log may be twice as large as what is live in it, and a segment more: fewer bytes are then written again than are given back.
struct CompactionPolicy {
  private let segments: [SealedSegment]
  /// What a segment is large when it is full.
  private let fullBytes: Int

  init(_ segments: [SealedSegment], _ fullBytes: Int) {
    self.segments = segments
    self.fullBytes = fullBytes
  }

  func isTooLarge(live: Int, logBytes: Int) -> Bool { !segments.isEmpty && logBytes > 2 * live + fullBytes }

  /// The segments to rewrite next, neighbours all; nil when none is worth it.
  func run(live: Int, logBytes: Int) -> Range<Int>? {
    guard isTooLarge(live: live, logBytes: logBytes) else { return nil }
    let best = segments.indices.min { kept($0) < kept($1) }
    if let best, kept(best) <= 0.75 { return widened(best..<best + 1) }
    return tombstoneRun()
  }

  /// How much of a segment a rewriting would keep, as far as is known.
  private func kept(_ index: Int) -> Double {
    let segment = segments[index]
    if segment.hasDamagedValue { return .infinity }
    let tombstones = areTombstonesDue(index) ? 0 : segment.tombstoneBytes ?? 0
    return Double(segment.liveBytes + tombstones + SegmentHeader.byteCount + SegmentTrailer.byteCount)
      / Double(max(1, segment.byteCount))
  }

  /// Whether the segments before have nothing left that its removals remove.
  private func areTombstonesDue(_ index: Int) -> Bool {
    segments[..<index].allSatisfy { $0.sweptRevision >= segments[index].lastRevision }
  }

  /// Takes in neighbours, as long as all that is kept makes no more than one segment and they are small or mostly garbage.
  private func widened(_ start: Range<Int>) -> Range<Int> {
    var run = start
    func bytes(_ index: Int) -> Int { Int(kept(index) * Double(segments[index].byteCount)) }
    var total = bytes(start.lowerBound)
    func takes(_ index: Int) -> Bool {
      guard segments.indices.contains(index), !segments[index].hasDamagedValue, total + bytes(index) <= fullBytes
      else { return false }
      return segments[index].byteCount <= fullBytes / 4 || kept(index) <= 0.5
    }
    while run.count < 16 {
      if takes(run.upperBound) {
        total += bytes(run.upperBound)
        run = run.lowerBound..<run.upperBound + 1
      } else if takes(run.lowerBound - 1) {
        total += bytes(run.lowerBound - 1)
        run = run.lowerBound - 1..<run.upperBound
      } else {
        break
      }
    }
    return run
  }

  /// Where removals are much of the log, they go once every segment before them was swept.
  private func tombstoneRun() -> Range<Int>? {
    let last = segments.indices.last { (segments[$0].tombstoneBytes ?? 0) * 4 > segments[$0].byteCount }
    guard let last else { return nil }
    let unswept = segments[..<last].firstIndex { $0.sweptRevision < segments[last].lastRevision } ?? last
    return segments[unswept].hasDamagedValue ? nil : unswept..<unswept + 1
  }

  /// Eight small neighbours or more, such as many starts leave behind.
  func smallOnes() -> Range<Int>? {
    var start = 0
    for index in segments.indices.reversed()
    where segments[index].byteCount > fullBytes / 8 || segments[index].hasDamagedValue {
      start = index + 1
      break
    }
    return segments.count - start >= 8 ? start..<min(segments.count, start + 16) : nil
  }
}
