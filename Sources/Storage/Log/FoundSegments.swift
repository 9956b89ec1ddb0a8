import Platform

/// A segment that was found in a folder, opened.
struct FoundSegment {
  let files: any FileSystem
  let path: String
  let file: any File
  let byteCount: Int
  let header: SegmentHeader

  /// Whether its very last bytes are its trailer, as sealing leaves it.
  func endsWithTrailer() throws(SystemError) -> Bool {
    let offset = byteCount - SegmentTrailer.byteCount
    guard offset >= SegmentHeader.byteCount else { return false }
    let bytes = try file.bytes(at: offset, count: SegmentTrailer.byteCount)
    return unsafe bytes.withBytes { bytes in
      unsafe SegmentTrailer.decode(bytes, at: offset, identity: header.identity) != nil
    }
  }
}

/// The segments of a folder that count, in order and without a gap.
struct FoundSegments {
  private(set) var segments: [FoundSegment] = []
  /// About how many records there are.
  private(set) var estimatedRecords = 0

  /// Finds them, and removes those that others stand for.
  mutating func read(_ folder: LogFolder, removesStale: Bool = true) throws(LogError) {
    let numbers = try LogError.on(folder.path) { () throws(SystemError) in try folder.segmentNumbers() }
    var stale: [String] = []
    for number in numbers {
      let path = folder.segmentPath(number)
      if let last = segments.last?.header.lastNumber, number <= last {
        // It was merged into the one before, and a crash came before it was removed.
        stale.append(path)
        continue
      }
      let expected = (segments.last?.header.lastNumber ?? 0) + 1
      guard number == expected else {
        throw .damaged(path: folder.segmentPath(expected), offset: 0, what: "the segment is missing")
      }
      try add(path, number: number, folder)
    }
    if removesStale, !stale.isEmpty {
      try LogError.on(folder.path) { () throws(SystemError) in
        for path in stale { try folder.files.remove(path) }
        try folder.files.syncFolder(folder.path)
      }
    }
    try estimate()
  }

  private mutating func add(_ path: String, number: UInt64, _ folder: LogFolder) throws(LogError) {
    let (file, start, byteCount) = try folder.openSegment(path)
    let (header, what) = SegmentHeader.decode(start)
    guard let header else { throw .damaged(path: path, offset: 0, what: what) }
    guard header.number == number else {
      throw .damaged(path: path, offset: 24, what: "the file is named for segment \(number) and is \(header.number)")
    }
    guard header.identity == segments.first?.header.identity ?? header.identity else {
      throw .damaged(path: path, offset: 16, what: "the segment belongs to another store")
    }
    guard byteCount <= LogSizes.limit else {
      throw .damaged(path: path, offset: LogSizes.limit, what: "the file is larger than any segment")
    }
    segments.append(FoundSegment(files: folder.files, path: path, file: file, byteCount: byteCount, header: header))
  }

  /// Takes the first records of some segments for typical.
  private mutating func estimate() throws(LogError) {
    var (bytes, records) = (0, 0)
    for index in stride(from: 0, to: segments.count, by: max(1, segments.count / 16)) {
      let segment = segments[index]
      var place = 0
      let sample = try LogError.on(segment.path) { () throws(SystemError) in
        try segment.file.bytes(at: SegmentHeader.byteCount, count: 16 << 10)
      }
      while place + 4 <= sample.count {
        let length = Int(sample.integer(at: place, as: UInt32.self))
        if length == 0 { break }
        place += CommitBuffer.recordHeaderByteCount + length
        records += 1
      }
      bytes += place
    }
    guard records > 0 else { return }
    // Nothing is a smaller record than this, so no damage makes for more.
    let average = max(CommitBuffer.recordHeaderByteCount + 17, bytes / records)
    // Nor has any store more.
    estimatedRecords = min(segments.reduce(0) { $0 + $1.byteCount } / average, Int(UInt32.max))
  }
}
