extension UnsafeRawBufferPointer {
  /// Divides sealed records (`CommitBuffer`) into runs that are written one after the other.
  /// - Parameter byteCount: The maximum size of a run that has more than one record.
  /// - Returns: The runs, with the revisions of their last records.
  package func recordRuns(upTo byteCount: Int) -> [(range: Range<Int>, lastRevision: UInt64)] {
    var runs: [(range: Range<Int>, lastRevision: UInt64)] = []
    var (start, end, lastRevision) = (0, 0, UInt64(0))
    while end < count {
      let next = unsafe end + recordByteCount(at: end)
      if next - start > byteCount, end > start {
        runs.append((start..<end, lastRevision))
        start = end
      }
      lastRevision = unsafe integer(at: end + CommitBuffer.recordHeaderByteCount, as: UInt64.self)
      end = next
    }
    if end > start { runs.append((start..<end, lastRevision)) }
    return runs
  }
}
