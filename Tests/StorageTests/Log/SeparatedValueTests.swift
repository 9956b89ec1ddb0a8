import Glibc
import Platform
import ReplicationTestSupport
import TestSupport
import Testing

@testable import Storage

/// Separated values, which are in the files of a log.
struct SeparatedValueTests {
  private let disk = SimulatedDisk(seed: 1)

  private func value(_ byte: UInt8, _ count: Int = 100_000) -> [UInt8] { Array(repeating: byte, count: count) }

  private func put(_ key: String, _ value: [UInt8]) -> WriteOperation {
    .put(key: key, value: value, kind: .single, expiry: 0)
  }

  private func stored(_ key: String, in log: TestLog) -> SeparatedValue? {
    let key = Array(key.utf8)
    return log.store.access { map in unsafe map.get(key.span.bytes, now: 0)?.separatedValue }
  }

  /// Compacts all sealed segments.
  private func compact(_ log: TestLog) throws {
    let engine = log.engine
    try engine.startSegment()
    try engine.compact(engine.writer.sealed.indices, revision: log.revision, log.store)
    while engine.isCompacting { _ = try log.performMaintenance() }
    while log.runner.advance() {}
  }

  @Test func `a value is in memory below 32 KiB, and in a file from there on`() throws {
    let log = try TestLog(disk)
    try log.commit([put("below", value(1, 32_767)), put("at", value(2, 32_768)), put("above", value(3, 1 << 20))])
    #expect(stored("below", in: log) == nil)
    #expect(try stored("at", in: log)?.bytes() == value(2, 32_768))
    #expect(try stored("above", in: log)?.bytes() == value(3, 1 << 20))
    let statistics = log.store.access { $0.statistics }
    #expect(statistics.valuesOnDisk == 2 && statistics.valuesOnDiskBytes == 32_768 + 1 << 20)
    #expect(statistics.contents.valueBytes == 32_767 + 32_768 + 1 << 20)
    #expect(statistics.memoryBytes < 200_000)
    try log.commit([put("at", [1]), .delete(key: "above")])
    #expect(log.store.access { $0.statistics }.valuesOnDisk == 0)
  }

  @Test func `when a commit has two values for a key, the later one wins`() throws {
    let log = try TestLog(disk)
    var buffer = CommitBuffer()
    let operations = [put("key", value(1)), put("key", value(2)), put("other", value(3)), put("key", value(4))]
    try log.store.access { map in for operation in operations { try operation.apply(to: &map, revision: 1) } }
    for operation in operations { operation.append(to: &buffer, revision: 1) }
    buffer.seal()
    while unsafe log.engine.reservedByteCount < buffer.bytes.count { try log.engine.reserveSpace() }
    log.store.updateLocations(
      unsafe try log.engine.write(buffer.bytes, last: 1, separatedCount: buffer.separatedCount, syncs: true))
    buffer.removeAll()
    #expect(try stored("key", in: log)?.bytes() == value(4))
    try compact(log)
    #expect(try stored("key", in: log)?.bytes() == value(4))
    disk.crash()
    #expect(try stored("key", in: TestLog(disk))?.bytes() == value(4))
  }

  @Test func `a snapshot reads values that were overwritten and compacted away`() throws {
    let log = try TestLog(disk)
    try log.commit([put("overwritten", value(1)), put("removed", value(2)), put("kept", value(3))])
    let before = try log.entries()
    let snapshot = log.store.access { $0.snapshot(now: 0) }
    try log.commit([put("overwritten", value(4)), .delete(key: "removed")])
    let file = stored("kept", in: log)?.file
    try compact(log)
    #expect(stored("kept", in: log)?.file !== file)
    #expect(try log.store.access { map in try map.modelEntries(in: snapshot) } == before)
    #expect(log.store.access { $0.statistics }.valuesOnDisk == 4)
    log.store.access { $0.end(snapshot) }
    #expect(log.store.access { $0.statistics }.valuesOnDisk == 2)
  }

  @Test func `a file is closed when its last value is gone`() throws {
    let log = try TestLog(disk)
    try log.commit([put("a", value(1)), put("b", value(2))])
    try compact(log)
    weak let file = stored("a", in: log)?.file
    #expect(file != nil)
    try log.commit([put("a", value(3)), put("b", value(4))])
    #expect(file == nil)
    weak let other = stored("a", in: log)?.file
    log.store.access { $0.drop() }
    try log.engine.close()
    #expect(other == nil)
  }

  @Test func `a separated value is never returned damaged, truncated or from a failing disk`() throws {
    let log = try TestLog(disk)
    try log.commit([put("key", value(7))])
    let value = try #require(stored("key", in: log))
    disk.injectedFailure = .init(.read, number: 1, errno: EIO)
    #expect(throws: SeparatedValueError.failed(path: "/log/0000000002.log", SystemError("read", errno: EIO))) {
      _ = try value.bytes()
    }
    #expect(try value.bytes() == self.value(7))
    disk.injectedFailure = nil
    disk.flip(value.file.path, bit: (value.offset + 50_000) * 8)
    let damaged = SeparatedValueError.damaged(path: value.file.path, offset: value.offset)
    #expect(throws: damaged) { _ = try value.bytes() }
    disk.flip(value.file.path, bit: (value.offset + 50_000) * 8)
    #expect(try value.bytes() == self.value(7))
    try disk.open(value.file.path, .writing).truncate(to: value.offset + 99_999)
    #expect(throws: damaged) { _ = try value.bytes() }
  }

  @Test func `damage to a value while the log is closed is detected when the value is read, and by a check`() throws {
    var log = try TestLog(disk)
    try log.commit([put("bad", value(1)), put("good", value(2)), put("small", [3])])
    let place = try #require(stored("bad", in: log))
    try log.engine.close()
    disk.flip(place.file.path, bit: (place.offset + 1) * 8)
    disk.kill()
    log = try TestLog(disk)
    #expect(throws: SeparatedValueError.damaged(path: place.file.path, offset: place.offset)) {
      _ = try stored("bad", in: log)?.bytes()
    }
    #expect(try stored("good", in: log)?.bytes() == value(2))
    let report = try LogCheck.check(TestLog.folder, files: disk)
    #expect(report.segments.compactMap(\.damage?.reason) == ["a value's checksum is wrong"])
    disk.placeFolder("/saved")
    _ = try LogCheck.salvage(TestLog.folder, to: "/saved", files: disk)
    let saved = try TestLog(disk, folder: "/saved")
    #expect(try Set(saved.entries().keys) == ["good", "small"])
  }

  @Test func `an unsealed log ends before a damaged value`() throws {
    let log = try TestLog(disk, configuration: LogConfiguration())
    try log.commit([put("key", value(1))])
    try log.commit([put("key", value(2))], syncs: false)
    let place = try #require(stored("key", in: log))
    disk.kill()
    disk.flip(place.file.path, bit: (place.offset + 1) * 8)
    let reopened = try TestLog(disk, configuration: LogConfiguration())
    #expect(try stored("key", in: reopened)?.bytes() == value(1))
    #expect(reopened.recovery.truncatedBytes > 0)
  }

  @Test func `an unreadable value stays in place, and the log continues`() throws {
    let log = try TestLog(disk)
    try log.commit([put("bad", value(1)), put("good", value(2)), put("small", [3])])
    let place = try #require(stored("bad", in: log))
    disk.flip(place.file.path, bit: (place.offset + 60_000) * 8)
    try compact(log)
    #expect(log.engine.writer.sealed.contains { $0.hasDamagedValue })
    #expect(throws: SeparatedValueError.self) { _ = try stored("bad", in: log)?.bytes() }
    #expect(try stored("good", in: log)?.bytes() == value(2))
    try log.commit([put("after", value(4))])
    while try log.performMaintenance() {}
    disk.crash()
    let reopened = try TestLog(disk)
    #expect(try stored("after", in: reopened)?.bytes() == value(4))
    #expect(try stored("good", in: reopened)?.bytes() == value(2))
  }

  @Test func `a record with many keys has separated and inline values`() throws {
    let log = try TestLog(disk)
    var buffer = CommitBuffer()
    let operations = (0..<200).map { number in
      put("key \(number)", value(UInt8(number), number % 50 == 7 ? 40_000 : number * 10))
    }
    try log.store.access { map in for operation in operations { try operation.apply(to: &map, revision: 1) } }
    for operation in operations { operation.append(to: &buffer, revision: 1) }
    buffer.seal()
    while unsafe log.engine.reservedByteCount < buffer.bytes.count { try log.engine.reserveSpace() }
    log.store.updateLocations(
      unsafe try log.engine.write(buffer.bytes, last: 1, separatedCount: buffer.separatedCount, syncs: true))
    buffer.removeAll()
    try log.commit([put("key 7", [1]), .delete(key: "key 100")])
    let entries = try log.entries()
    try compact(log)
    #expect(try log.entries() == entries)
    disk.crash()
    let reopened = try TestLog(disk)
    #expect(try reopened.entries() == entries)
    #expect(reopened.store.access { $0.statistics }.valuesOnDisk == 3)
    #expect(try LogCheck.check(TestLog.folder, files: disk).isIntact)
  }
}
