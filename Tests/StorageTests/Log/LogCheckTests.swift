import Platform
import TestSupport
import Testing

@testable import Storage

struct LogCheckTests {
  /// Returns a disk with a closed log of 60 entries in several segments.
  private func sample() throws -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 9)
    let log = try TestLog(disk)
    for number in 1...60 {
      let value = [UInt8](repeating: UInt8(number), count: 200)
      try log.commit([.put(key: "key \(number)", value: value, kind: .single, expiry: 0)])
    }
    try log.engine.close()
    disk.kill()
    return disk
  }

  @Test func `check finds a closed log intact`() throws {
    let report = try LogCheck.check("/log", files: try sample())
    #expect(report.isIntact)
    #expect(report.segments.count > 3)
    #expect(report.segments.allSatisfy { $0.isSealed && $0.tornBytes == 0 })
    #expect(report.segments.last?.lastRevision == 60)
  }

  @Test func `damage is reported with its file and offset, and everything else is salvaged`() throws {
    let disk = try sample()
    let place = SegmentHeader.byteCount + 60
    disk.flip("/log/0000000002.log", bit: place * 8)
    let report = try LogCheck.check("/log", files: disk)
    #expect(!report.isIntact)
    let damaged = report.segments.filter { $0.damage != nil }
    #expect(damaged.map(\.path) == ["/log/0000000002.log"])
    let offset = try #require(damaged.first?.damage?.offset)
    #expect(offset == SegmentHeader.byteCount + LogFrame.byteCount)
    disk.placeFolder("/salvaged")
    let (_, records) = try LogCheck.salvage("/log", to: "/salvaged", files: disk)
    #expect(records == 59)
    let log = try TestLog(disk, folder: "/salvaged")
    let entries = try log.entries()
    #expect(entries.count == 59)
    #expect(entries.allSatisfy { $0.value.value == [UInt8](repeating: UInt8($0.value.revision), count: 200) })
    #expect(log.revision == 60)
  }

  @Test func `a damaged record of a large commit costs no more than its frame`() throws {
    let disk = SimulatedDisk(seed: 9)
    let log = try TestLog(disk, configuration: LogConfiguration())
    let value = [UInt8](repeating: 1, count: 2_000)
    try log.commit((1...200).map { .put(key: "key \($0)", value: value, kind: .single, expiry: 0) })
    let entries = try log.entries()
    try log.engine.close()
    disk.kill()
    #expect(try TestLog(disk, configuration: LogConfiguration()).entries() == entries)
    disk.kill()
    disk.flip("/log/0000000001.log", bit: 8 * (SegmentHeader.byteCount + LogFrame.byteCount + 40))
    disk.placeFolder("/salvaged")
    let (_, records) = try LogCheck.salvage("/log", to: "/salvaged", files: disk)
    #expect(records == 200 - LogFrame.usualRecordByteCount / (value.count + 29))
  }

  @Test func `values that look like records are ignored when only a value is damaged`() throws {
    var forged = CommitBuffer()
    WriteOperation.put(key: "forged", value: [1], kind: .single, expiry: 0).append(to: &forged, revision: 1 << 40)
    forged.seal()
    let forgery = unsafe Array(forged.bytes)
    let disk = SimulatedDisk(seed: 9)
    let log = try TestLog(disk, configuration: LogConfiguration())
    let value = Array(repeatElement(forgery, count: 2_000).joined())
    for key in ["a", "b"] { try log.commit([.put(key: key, value: value, kind: .single, expiry: 0)]) }
    try log.commit([.put(key: "c", value: [3], kind: .single, expiry: 0)])
    try log.engine.close()
    disk.kill()
    let record = SegmentHeader.byteCount + LogFrame.byteCount
    let place = record + 29
    let bytes = try #require(disk.contents("/log/0000000001.log"))
    #expect(bytes[place..<place + value.count].elementsEqual(value))
    disk.flip("/log/0000000001.log", bit: 8 * (place + 50))
    disk.placeFolder("/salvaged")
    let (report, records) = try LogCheck.salvage("/log", to: "/salvaged", files: disk)
    #expect(report.segments[0].damage == .init(offset: record, reason: "a value's checksum is wrong"))
    #expect(records == 2)
    #expect(report.segments[0].lostBytes == place + value.count - record)
    #expect(try TestLog(disk, folder: "/salvaged").entries().keys.sorted() == ["b", "c"])
  }

  @Test func `a segment that is missing or has lost its header is reported, and the rest is salvaged`() throws {
    let disk = try sample()
    let lost = try LogCheck.check("/log", files: disk).segments[1].records
    disk.flip("/log/0000000003.log", bit: 3)
    try disk.remove("/log/0000000002.log")
    let report = try LogCheck.check("/log", files: disk)
    #expect(report.missing == ["/log/0000000002.log"])
    #expect(report.segments.filter { $0.damage != nil }.map(\.damage?.offset) == [0])
    disk.placeFolder("/salvaged")
    let (_, records) = try LogCheck.salvage("/log", to: "/salvaged", files: disk)
    #expect(records >= 60 - lost)
    disk.placeFolder("/salvaged")
    #expect(throws: LogError.self) { _ = try LogCheck.salvage("/log", to: "/salvaged", files: disk) }
  }
}
