import Platform

/// The folder of one log, and the names in it: `Protocol/log-format.md`, section 1.
struct LogFolder: Sendable {
  private let files: any FileSystem
  let path: String

  init(files: any FileSystem, path: String) {
    self.files = files
    self.path = path
  }

  /// A file that was allocated ahead and becomes the next segment.
  var nextPath: String { "\(path)/next.tmp" }
  /// The output of a compaction until it replaces a segment.
  var compactionPath: String { "\(path)/compaction.tmp" }
  /// What is known about the end of the log.
  var manifestPath: String { "\(path)/\(ManifestFile.name)" }
  /// A manifest until it is complete.
  var newManifestPath: String { "\(manifestPath).tmp" }
  /// Space that a compaction may use when the disk is full.
  var reservePath: String { "\(path)/reserve.tmp" }

  /// Returns the path of a segment, which has its number in ten digits.
  func segmentPath(_ number: UInt64) -> String {
    let digits = String(number)
    return "\(path)/" + String(repeating: "0", count: max(0, 10 - digits.count)) + digits + ".log"
  }

  /// Returns the numbers of all segments in order.
  func segmentNumbers() throws(SystemError) -> [UInt64] {
    var numbers: [UInt64] = []
    for name in try files.list(path) {
      guard name.hasSuffix(".log"), let number = UInt64(name.dropLast(4)), SegmentHeader.numbers.contains(number)
      else { continue }
      if segmentPath(number) == "\(path)/\(name)" { numbers.append(number) }
    }
    return numbers.sorted()
  }

  /// Opens a segment for reading.
  /// - Returns: The file, the bytes that should be its header, and its size.
  func openSegment(_ path: String) throws(LogError) -> (file: any File, start: [UInt8], byteCount: Int) {
    try LogError.wrapping(path) { () throws(SystemError) in
      let file = try files.open(path, .reading)
      return (file, try file.bytes(at: 0, count: SegmentHeader.byteCount), try file.byteCount())
    }
  }

  /// Removes what earlier work has left unfinished.
  func removeLeftovers() throws(SystemError) {
    for leftover in [nextPath, compactionPath, newManifestPath] { try removeIfPresent(leftover) }
  }

  func exists(_ path: String) throws(SystemError) -> Bool { try files.kind(of: path) != nil }

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File { try files.open(path, access) }

  func openForWriting(_ path: String) throws(SystemError) -> any File { try open(path, .writing) }

  /// Creates a file, and replaces an existing one.
  func create(_ path: String) throws(SystemError) -> any File {
    try removeIfPresent(path)
    return try files.open(path, .creating)
  }

  func rename(_ path: String, to newPath: String) throws(SystemError) { try files.rename(path, to: newPath) }

  func remove(_ path: String) throws(SystemError) { try files.remove(path) }

  func removeIfPresent(_ path: String) throws(SystemError) { if try exists(path) { try remove(path) } }

  /// Removes segments, and returns when that is on disk.
  func removeSegments(_ paths: [String]) throws(SystemError) {
    for path in paths { try remove(path) }
    try files.syncFolder(path)
  }
}

/// A segment in a folder, open for reading.
struct SegmentFile {
  let path: String
  let file: any File
  let byteCount: Int
  let header: SegmentHeader

  /// Returns whether the file ends with its trailer, as sealing leaves it.
  func endsWithTrailer() throws(SystemError) -> Bool {
    let offset = byteCount - SegmentTrailer.byteCount
    guard offset >= header.byteCount else { return false }
    let bytes = try file.bytes(at: offset, count: SegmentTrailer.byteCount)
    return unsafe bytes.withBytes { bytes in
      unsafe SegmentTrailer.decode(bytes, at: offset, secret: header.secret) != nil
    }
  }
}

/// The segments that make up a log, in order and without a gap.
struct SegmentList {
  private(set) var segments: [SegmentFile] = []
  /// The approximate number of records.
  private(set) var estimatedRecordCount = 0
  /// The segments that a merged one has replaced, and that a crash has left.
  private(set) var replacedPaths: [String] = []

  /// Opens the segments of a folder, and changes nothing.
  /// - Parameter manifest: The log's manifest; nil if it has none.
  /// - Throws: `damaged` if the segments aren't those of a whole log.
  init(opening folder: LogFolder, manifest: LogManifest? = nil) throws(LogError) {
    let numbers = try LogError.wrapping(folder.path) { () throws(SystemError) in try folder.segmentNumbers() }
    for number in numbers {
      let path = folder.segmentPath(number)
      if let last = segments.last?.header.lastNumber, number <= last {
        // It was merged into the previous one, and a crash came before it was removed.
        replacedPaths.append(path)
        continue
      }
      let expected = (segments.last?.header.lastNumber ?? 0) + 1
      guard number == expected else {
        throw .damaged(path: folder.segmentPath(expected), offset: 0, reason: "the segment is missing")
      }
      try add(path, number: number, folder)
    }
    if let manifest {
      try check(manifest, folder)
    } else if segments.contains(where: { $0.header.salt != nil }) {
      throw .damaged(path: folder.manifestPath, offset: 0, reason: "the manifest is missing")
    }
    estimatedRecordCount = try estimateRecordCount()
  }

  private func check(_ manifest: LogManifest, _ folder: LogFolder) throws(LogError) {
    let lastNumber = segments.last?.header.lastNumber ?? 0
    guard manifest.number <= lastNumber else {
      throw .damaged(path: folder.segmentPath(lastNumber + 1), offset: 0, reason: "the segment is missing")
    }
    guard manifest.identity == segments.first?.header.identity ?? manifest.identity else {
      throw .damaged(path: folder.manifestPath, offset: 24, reason: "the manifest belongs to another store")
    }
  }

  private mutating func add(_ path: String, number: UInt64, _ folder: LogFolder) throws(LogError) {
    let (file, start, byteCount) = try folder.openSegment(path)
    let header: SegmentHeader
    do throws(SegmentHeader.DecodingError) { header = try .decode(start) } catch { throw error.logError(path) }
    guard header.number == number else {
      throw .damaged(path: path, offset: 24, reason: "the file is named for segment \(number) but is \(header.number)")
    }
    guard header.identity == segments.first?.header.identity ?? header.identity else {
      throw .damaged(path: path, offset: 16, reason: "the segment belongs to another store")
    }
    guard byteCount <= LogConfiguration.maxFileByteCount else {
      throw .damaged(
        path: path, offset: LogConfiguration.maxFileByteCount, reason: "the file is larger than any segment")
    }
    segments.append(SegmentFile(path: path, file: file, byteCount: byteCount, header: header))
  }

  /// Estimates the number of records from the first records of some segments.
  private func estimateRecordCount() throws(LogError) -> Int {
    var (bytes, records) = (0, 0)
    for index in stride(from: 0, to: segments.count, by: max(1, segments.count / 16)) {
      let segment = segments[index]
      let sample = try LogError.wrapping(segment.path) { () throws(SystemError) in
        try segment.file.bytes(at: segment.header.byteCount, count: 16 << 10)
      }
      var (offset, frameEnd) = (0, segment.header.salt == nil ? Int.max : 0)
      while offset + 4 <= sample.count {
        let length = Int(sample.integer(at: offset, as: UInt32.self))
        if length == 0 { break }
        if offset == frameEnd {
          offset += LogFrame.byteCount
          frameEnd = offset + length
        } else {
          offset += CommitBuffer.recordHeaderByteCount + length
          records += 1
        }
      }
      bytes += offset
    }
    guard records > 0 else { return 0 }
    // No record is smaller than this, so damage can't make the estimate arbitrarily large.
    let average = max(CommitBuffer.recordHeaderByteCount + 17, bytes / records)
    // No store has more.
    return min(segments.reduce(0) { $0 + $1.byteCount } / average, Int(UInt32.max))
  }
}

/// A segment that no commit is written to any more.
struct SealedSegment: Sendable {
  let number: UInt64
  let lastNumber: UInt64
  let firstRevision: UInt64
  let lastRevision: UInt64
  let sweptRevision: UInt64
  /// The salt in its header; nil in version 1.
  let salt: UInt64?
  /// The size of header, records and trailer.
  let byteCount: Int
  /// The size of its tombstones; nil if they have not been read.
  let tombstoneByteCount: Int?
  /// The size of its live records, as the last scan or the compaction has found.
  var liveByteCount: Int
  /// Whether a value in it can't be read, which rules out compaction.
  var hasDamagedValue = false
}
