import Platform
import TestSupport
import Testing

@testable import Storage

/// What clients write may look like any part of a log. Salvage doesn't believe it, whatever is damaged around it.
struct LogForgeryTests {
  private static func put(_ key: String, _ value: [UInt8]) -> WriteOperation {
    .put(key: key, value: value, kind: .single, expiry: 0)
  }

  /// Returns a record that any client can make.
  private static func record(_ operation: WriteOperation, revision: UInt64) -> [UInt8] {
    var commits = CommitBuffer()
    operation.append(to: &commits, revision: revision)
    commits.seal()
    return unsafe Array(commits.bytes)
  }

  /// Records that invent an entry, delete one, and end the revisions.
  private static let forgery: [UInt8] = {
    let records = [
      record(put("invented", [1]), revision: 4), record(.delete(key: "victim"), revision: 5),
      record(put("invented", [2]), revision: 1 << 40),
    ]
    return Array(repeatElement(records.joined(), count: 50).joined())
  }()

  /// Returns the offset of a value in a file.
  private static func offset(of value: [UInt8], in bytes: [UInt8]) throws -> Int {
    try #require((0...bytes.count - value.count).first { bytes[$0..<$0 + value.count].elementsEqual(value) })
  }

  /// Salvages a log, and returns the entries of the result.
  private static func salvaged(_ disk: SimulatedDisk) throws -> [String: [UInt8]] {
    disk.placeFolder("/salvaged")
    _ = try LogCheck.salvage(TestLog.folder, to: "/salvaged", files: disk)
    return try TestLog(disk, folder: "/salvaged").entries().mapValues(\.value)
  }

  /// Each place before a value whose damage leaves the record's end unknown.
  @Test(arguments: [-32, -20, -16, -12, -10, -1, 0])
  func `salvage ignores records in the value of a damaged record`(place: Int) throws {
    let disk = SimulatedDisk(seed: 9)
    let log = try TestLog(disk, configuration: LogConfiguration())
    try log.commit([Self.put("victim", [7])])
    try log.commit([Self.put("forger", Self.forgery)])
    try log.commit([Self.put("after", [8])])
    try log.engine.close()
    disk.kill()
    let path = "/log/0000000001.log"
    let value = try Self.offset(of: Self.forgery, in: try #require(disk.contents(path)))
    disk.flip(path, bit: 8 * (value + place) + 5)
    #expect(try Self.salvaged(disk) == ["victim": [7], "after": [8]])
  }

  @Test func `salvage ignores a copy of the log in a value of the same segment`() throws {
    let disk = SimulatedDisk(seed: 9)
    let log = try TestLog(disk, configuration: LogConfiguration())
    let path = "/log/0000000001.log"
    try log.commit([Self.put("removed", [7]), Self.put("kept", [8])])
    try log.commit([.delete(key: "removed")])
    let copy = Array(try #require(disk.contents(path))[..<400])
    try log.commit([Self.put("copy", copy)])
    try log.commit([Self.put("after", [9])])
    try log.engine.close()
    disk.kill()
    let bytes = try #require(disk.contents(path))
    let place = try Self.offset(of: copy, in: bytes)
    disk.flip(path, bit: 8 * (place - 5))
    #expect(try Self.salvaged(disk) == ["kept": [8], "after": [9]])
  }

  @Test func `in a segment of version 1, salvage continues after the next sync mark`() throws {
    let header = SegmentHeader(identity: 0x1234_5678_9ABC_DEF1, number: 1, lastNumber: 1, firstRevision: 1)
    var bytes = header.bytes + Self.record(Self.put("victim", [7]), revision: 1)
    bytes += Self.record(Self.put("forger", Self.forgery), revision: 2)
    bytes += Self.record(Self.put("lost", [8]), revision: 3)
    bytes += SyncMark(revision: 3, identity: header.identity, syncedByteCount: bytes.count).bytes
    bytes += Self.record(Self.put("after", [9]), revision: 1 << 50)
    bytes += SegmentTrailer(offset: bytes.count, lastRevision: 1 << 50, secret: header.identity).bytes
    let disk = SimulatedDisk(seed: 1)
    disk.placeFolder("/log")
    disk.place("/log/0000000001.log", bytes)
    #expect(try LogCheck.check("/log", files: disk).isIntact)
    disk.flip("/log/0000000001.log", bit: 8 * (try Self.offset(of: Self.forgery, in: bytes)) - 70)
    #expect(try Self.salvaged(disk) == ["victim": [7], "after": [9]])
  }

  @Test(arguments: [
    WriteOperation.put(key: "list", value: [9, 0, 0, 0, 1], kind: .list, expiry: 0),
    WriteOperation.put(key: "list", value: [1, 0, 0], kind: .list, expiry: 0),
  ]) func `a malformed list in a log is damage`(operation: WriteOperation) throws {
    try expectDamage(in: Self.record(operation, revision: 1))
  }

  @Test func `a key in a log that isn't UTF-8 is damage`() throws {
    for key: [UInt8] in [[0xFF], [0x61, 0xC3], [0xED, 0xA0, 0x80], Array("0123456789".utf8) + [0x80]] {
      var commits = CommitBuffer()
      unsafe key.withBytes { key in
        unsafe commits.put(key, key, kind: .single, expiry: 0, revision: 1)
        unsafe commits.delete(key, revision: 2)
      }
      commits.seal()
      let records = unsafe Array(commits.bytes)
      try expectDamage(in: records)
      let put = 8 + Int(records.integer(at: 0, as: UInt32.self))
      try expectDamage(in: Array(records[put...]))
    }
  }

  private func expectDamage(in records: [UInt8]) throws {
    let header = SegmentHeader(identity: 7, number: 1, lastNumber: 1, firstRevision: 1)
    let bytes = header.bytes + records
    let disk = SimulatedDisk(seed: 1)
    disk.placeFolder("/log")
    let trailer = SegmentTrailer(offset: bytes.count, lastRevision: 2, secret: 7)
    disk.place("/log/0000000001.log", bytes + trailer.bytes)
    #expect(throws: LogError.self) { try TestLog(disk) }
    let report = try LogCheck.check("/log", files: disk)
    #expect(report.segments.first?.damage?.offset == header.bytes.count)
  }
}
