import Platform

/// The folder of one log, and the names in it: `Protocol/log-format.md`, section 1.
struct LogFolder: Sendable {
  let files: any FileSystem
  let path: String

  /// Made ahead: it becomes the next segment.
  var nextPath: String { "\(path)/next.tmp" }
  /// What a compaction writes, until it takes the place of a segment.
  var compactionPath: String { "\(path)/compaction.tmp" }
  /// Space that a compaction may have when the disk is full.
  var reservePath: String { "\(path)/reserve.tmp" }

  /// A segment has a number of ten digits.
  func segmentPath(_ number: UInt64) -> String {
    let digits = String(number)
    return "\(path)/" + String(repeating: "0", count: max(0, 10 - digits.count)) + digits + ".log"
  }

  /// The numbers of all segments, in order.
  func segmentNumbers() throws(SystemError) -> [UInt64] {
    var numbers: [UInt64] = []
    for name in try files.list(path) {
      guard name.hasSuffix(".log"), let number = UInt64(name.dropLast(4)), SegmentHeader.numbers.contains(number)
      else { continue }
      if segmentPath(number) == "\(path)/\(name)" { numbers.append(number) }
    }
    return numbers.sorted()
  }

  /// Opens a segment to read it.
  /// - Returns: it, what should be its header, and its size.
  func openSegment(_ path: String) throws(LogError) -> (file: any File, start: [UInt8], byteCount: Int) {
    try LogError.on(path) { () throws(SystemError) in
      let file = try files.open(path, .reading)
      return (file, try file.bytes(at: 0, count: SegmentHeader.byteCount), try file.byteCount())
    }
  }

  /// Removes what earlier work left unfinished.
  func removeLeftovers() throws(SystemError) {
    for leftover in [nextPath, compactionPath] where try files.kind(of: leftover) != nil {
      try files.remove(leftover)
    }
  }

  /// Makes the folder if it isn't there.
  func make() throws(SystemError) {
    guard try files.kind(of: path) == nil else { return }
    try files.makeFolder(path)
    if let slash = path.lastIndex(of: "/"), slash > path.startIndex { try files.syncFolder(String(path[..<slash])) }
  }
}
