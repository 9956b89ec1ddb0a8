/// How large the files of a log are made. Tests have smaller ones.
package struct LogSizes: Sendable {
  /// No file of a log is larger than this.
  static let limit = 1 << 40

  /// The first segment of a store; later ones grow with it.
  package var minSegmentSize = 1 << 20
  package var maxSegmentSize = 64 << 20
  /// The reserve is kept only when the log has at least this size, so that small stores stay small.
  package var reserveFrom = 4 << 20
  /// A mark of what is synced is written once so much more is.
  package var markInterval = 4_096
  /// What a compaction writes in a second at most, unless the log grows in spite of it.
  package var compactionBytesPerSecond = 64 << 20

  package init() {}

  /// The size of the next segment of a log that has so many bytes: an eighth, as a power of two within the limits.
  func segment(logBytes: Int) -> Int {
    var size = minSegmentSize
    while size < maxSegmentSize, size * 8 < logBytes { size *= 2 }
    return size
  }
}
