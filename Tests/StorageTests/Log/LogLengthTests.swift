import Platform
import TestSupport
import Testing

@testable import Storage

/// Lengths and numbers that no writer of a log would produce neither take memory nor end the process.
struct LogLengthTests {
  /// A log of one segment with the given bytes, extended by a hole.
  private struct SparseLog {
    private let folder: TemporaryFolder
    var path: String { folder.path }
    let files = ObservedFiles()

    init(_ records: [UInt8], byteCount: Int, number: UInt64 = 1) throws {
      folder = try TemporaryFolder()
      let header = SegmentHeader(identity: 7, number: number, lastNumber: number, firstRevision: 1)
      let file = try files.open(LogFolder(files: files, path: path).segmentPath(number), .creating)
      try file.write(header.bytes + records, at: 0)
      try file.truncate(to: byteCount)
    }

    /// Opens the log, and expects its first record to be damaged.
    func read() throws {
      let list = try SegmentList(opening: LogFolder(files: files, path: path))
      var reader = SegmentReader(try #require(list.segments.first), verifiesValues: true)
      #expect(try reader.next().isEmpty)
      #expect(reader.state.isDamaged && reader.end == list.segments.first?.header.byteCount)
    }
  }

  private static func record(length: UInt32, operations: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: length)
    bytes.append(littleEndian: 0 as UInt32)
    bytes.append(littleEndian: 1 as UInt64)
    return bytes + operations
  }

  private static func put(flags: UInt8, valueByteCount: UInt32) -> [UInt8] {
    var bytes: [UInt8] = [CommitBuffer.Kind.single.rawValue, flags, 1, 0]
    bytes.append(littleEndian: valueByteCount)
    if flags & CommitBuffer.Flag.separated != 0 { bytes += [0, 0, 0, 0] }
    return bytes + "k".utf8
  }

  @Test func `a record that claims to be long is read only as far as it is a record`() throws {
    let log = try SparseLog(Self.record(length: 1 << 29, operations: []), byteCount: 1 << 30)
    try log.read()
    #expect(log.files.bytesRead < 4 << 20)
  }

  @Test func `a long value in a record is not read unless the record can contain it`() throws {
    let separated =
      Self.put(flags: CommitBuffer.Flag.separated, valueByteCount: UInt32(CommitBuffer.separatedByteCount))
      + [UInt8](repeating: 0, count: CommitBuffer.separatedByteCount)
    let log = try SparseLog(
      Self.record(length: 1 << 29, operations: separated + Self.put(flags: 0, valueByteCount: 1 << 28)),
      byteCount: 1 << 30)
    // The first value's checksum is wrong.
    let list = try SegmentList(opening: LogFolder(files: log.files, path: log.path))
    var reader = SegmentReader(try #require(list.segments.first), verifiesValues: false)
    #expect(try reader.next().isEmpty)
    #expect(reader.state.isDamaged)
    #expect(log.files.bytesRead < 4 << 20)
  }

  @Test func `a log file larger than any segment is refused`() throws {
    let log = try SparseLog([], byteCount: 1 << 41)
    let path = LogFolder(files: log.files, path: log.path).segmentPath(1)
    #expect {
      try TestLog(log.files, folder: log.path)
    } throws: { error in
      guard case .damaged(path, 1 << 40, _) = error as? LogError else { return false }
      return true
    }
  }

  @Test(arguments: ["18446744073709551615", "9223372036854775808"])
  func `a file with the last possible number doesn't belong to the log`(number: String) throws {
    let disk = SimulatedDisk(seed: 11)
    disk.placeFolder("/log")
    disk.place("/log/\(number).log", [])
    #expect(try LogCheck.check("/log", files: disk).segments.isEmpty)
    let log = try TestLog(disk)
    try log.commit([.put(key: "a", value: [1], kind: .single, expiry: 0)])
  }
}

extension SegmentReader.State {
  fileprivate var isDamaged: Bool { if case .damaged = self { true } else { false } }
}
