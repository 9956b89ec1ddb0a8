import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

/// A log knows how far it reached, and notices when its end is missing.
struct LogEndTests {
  private static func put(_ number: Int) -> WriteOperation {
    .put(key: "key \(number)", value: [UInt8](repeating: UInt8(number), count: 200), kind: .single, expiry: 0)
  }

  private static func path(_ number: UInt64) -> String { "/log/000000000\(number).log" }

  /// Returns a log with that many entries, each of a revision of its own.
  private static func log(_ disk: SimulatedDisk, entries: Int) throws -> TestLog {
    let log = try TestLog(disk)
    for number in 1...entries { try log.commit([put(number)]) }
    return log
  }

  /// Expects a log to be refused for damage at that place, and a check to find the same.
  private static func expectDamage(_ disk: SimulatedDisk, path: String, offset: Int? = nil, _ comment: Comment) throws {
    #expect(comment) {
      _ = try TestLog(disk)
    } throws: { error in
      guard case .damaged(path, let found, _) = error as? LogError else { return false }
      return found == offset ?? found
    }
    let report = try LogCheck.check("/log", files: disk)
    let isFound = report.missing.contains(path) || report.segments.contains { $0.path == path && $0.damage != nil }
    #expect(isFound && !report.isIntact, comment)
  }

  @Test func `after a clean stop, a log that is cut anywhere is refused with the place where it ends`() throws {
    let disk = SimulatedDisk(seed: 3)
    try Self.log(disk, entries: 5).engine.close()
    disk.kill()
    let bytes = try #require(disk.contents(Self.path(1)))
    for count in 100..<bytes.count - SegmentTrailer.byteCount {
      disk.place(Self.path(1), Array(bytes[..<count]))
      try Self.expectDamage(disk, path: Self.path(1), "\(count) of \(bytes.count) bytes")
      disk.place(Self.path(1), Array(bytes[..<count]) + [UInt8](repeating: 0, count: bytes.count - count))
      try Self.expectDamage(disk, path: Self.path(1), "\(count) of \(bytes.count) bytes, then zeros")
    }
    disk.place(Self.path(1), bytes)
    #expect(try TestLog(disk).revision == 5)
  }

  @Test func `after a kill, a log that is cut within what was synced is refused, and otherwise loses the rest`() throws
  {
    let disk = SimulatedDisk(seed: 3)
    let log = try Self.log(disk, entries: 3)
    let synced = log.engine.writer.byteCount
    try log.commit([Self.put(4)], syncs: false)
    let end = log.engine.writer.byteCount
    disk.kill()
    let bytes = try #require(disk.contents(Self.path(1)))
    for count in stride(from: 100, to: synced, by: 7) {
      disk.place(Self.path(1), Array(bytes[..<count]) + [UInt8](repeating: 0, count: bytes.count - count))
      try Self.expectDamage(disk, path: Self.path(1), "\(count) of \(synced) synced bytes")
    }
    for count in [synced, synced + 1, end - 1] {
      let copy = SimulatedDisk(seed: 3)
      for name in try disk.list("/log") { copy.place("/log/\(name)", try #require(disk.contents("/log/\(name)"))) }
      copy.place(Self.path(1), Array(bytes[..<count]))
      #expect(try TestLog(copy).revision == 3, "\(count) of \(end) bytes")
    }
    disk.place(Self.path(1), bytes)
    #expect(try TestLog(disk).revision == 4)
  }

  @Test(arguments: [true, false]) func `a log without its newest segment is refused`(isClosed: Bool) throws {
    let disk = SimulatedDisk(seed: 4)
    let log = try Self.log(disk, entries: 40)
    let newest = Self.path(log.engine.writer.nextNumber - 1)
    if isClosed { try log.engine.close() }
    disk.kill()
    try disk.remove(newest)
    try Self.expectDamage(disk, path: newest, offset: 0, "without \(newest)")
  }

  @Test func `a clean stop notes the end even if a full disk left the log without a segment to write to`() throws {
    let disk = SimulatedDisk(seed: 9)
    _ = try Self.log(disk, entries: 5)
    disk.kill()
    disk.byteLimit = 0
    let full = try TestLog(disk)
    #expect(full.engine.reservedByteCount == 0)
    try full.engine.close()
    disk.kill()
    let bytes = try #require(disk.contents(Self.path(1)))
    disk.place(Self.path(1), Array(bytes[..<(bytes.count - SegmentTrailer.byteCount - 10)]))
    try Self.expectDamage(disk, path: Self.path(1), "the last record is missing")
  }

  @Test func `a segment that an earlier process has started is noted before it gets a record`() throws {
    for call in 1...12 {
      let disk = SimulatedDisk(seed: 10)
      let log = try Self.log(disk, entries: 5)
      disk.injectedFailure = .init(number: call, errno: EIO, isPersistent: true)
      try? log.engine.startSegment()
      disk.kill()
      let reopened = try TestLog(disk)
      try reopened.commit([Self.put(6)])
      let newest = Self.path(reopened.engine.writer.nextNumber - 1)
      disk.crash()
      try disk.remove(newest)
      try Self.expectDamage(disk, path: newest, offset: 0, "interrupted at call \(call), without \(newest)")
    }
  }

  @Test func `log entries readable after a failed sync survive a power cut`() throws {
    for call in 1...12 {
      let disk = SimulatedDisk(seed: UInt64(call))
      let log = try Self.log(disk, entries: 2)
      disk.injectedFailure = .init(.sync, number: call, errno: EIO)
      do {
        for number in 3...9 { try log.commit([Self.put(number)], syncs: number % 2 == 0) }
        try log.engine.startSegment()
        #expect(call == 12, "there are more syncs now than the test interrupts")
      } catch is EngineError {}
      disk.kill()
      let reopened = try TestLog(disk)
      try reopened.commit([Self.put(10)])
      let (shown, revision) = (try reopened.entries(), reopened.revision)
      disk.crash()
      let again = try TestLog(disk)
      #expect(try again.entries() == shown && again.revision == revision, "sync \(call) failed")
    }
  }

  @Test func `a log without any segment is refused`() throws {
    let disk = SimulatedDisk(seed: 4)
    _ = try Self.log(disk, entries: 2)
    disk.kill()
    try disk.remove(Self.path(1))
    try Self.expectDamage(disk, path: Self.path(1), offset: 0, "without segments")
  }

  @Test func `a log that ends before what a compaction depended on is refused`() throws {
    let disk = SimulatedDisk(seed: 5)
    let log = try Self.log(disk, entries: 20)
    try log.engine.startSegment()
    let newest = Self.path(log.engine.writer.nextNumber - 1)
    // The compaction drops what these writes replaced.
    for number in 1...5 { try log.commit([Self.put(number)]) }
    try log.engine.compact(0..<log.engine.writer.sealed.count, revision: log.revision, log.store)
    while log.engine.isCompacting { _ = try log.performMaintenance() }
    disk.kill()
    let bytes = try #require(disk.contents(newest))
    let end = try #require(bytes.lastIndex { $0 != 0 })
    disk.place(newest, Array(bytes[..<(end - 100)]) + [UInt8](repeating: 0, count: bytes.count - end + 100))
    try Self.expectDamage(disk, path: newest, "the last write is missing")
    disk.place(newest, bytes)
    #expect(try TestLog(disk).revision == 25)
  }

  @Test func `a log of version 2 without a manifest, or with that of another store, is refused`() throws {
    let disk = SimulatedDisk(seed: 7)
    try Self.log(disk, entries: 3).engine.close()
    disk.kill()
    let manifest = try #require(disk.contents("/log/manifest"))
    try disk.remove("/log/manifest")
    let missing = LogError.damaged(path: "/log/manifest", offset: 0, reason: "the manifest is missing")
    #expect(throws: missing) { try TestLog(disk) }
    #expect(try LogCheck.check("/log", files: disk).manifestDamage?.reason == "the manifest is missing")
    // One damaged copy is what an interrupted change leaves.
    for copy in [0, 512] {
      var damaged = manifest
      damaged[copy + 40] ^= 1
      disk.place("/log/manifest", damaged)
      #expect(try TestLog(disk).revision == 3)
      disk.kill()
    }
    disk.place("/log/manifest", Array(manifest.map { $0 ^ 1 }))
    #expect(throws: LogError.self) { try TestLog(disk) }
    #expect(try !LogCheck.check("/log", files: disk).isIntact)
    disk.placeFolder("/salvaged")
    let (_, records) = try LogCheck.salvage("/log", to: "/salvaged", files: disk)
    #expect(records == 3)
  }

  @Test func `a log of version 1 without a manifest is opened, and gets one`() throws {
    let header = SegmentHeader(identity: 7, number: 1, lastNumber: 1, firstRevision: 1)
    var commits = CommitBuffer()
    Self.put(1).append(to: &commits, revision: 1)
    commits.seal()
    let disk = SimulatedDisk(seed: 8)
    disk.placeFolder("/log")
    // Unsealed, with space after its record.
    disk.place(Self.path(1), unsafe header.bytes + Array(commits.bytes) + [UInt8](repeating: 0, count: 1_000))
    var log = try TestLog(disk)
    #expect(log.recovery.truncatedBytes == 0)
    try log.commit([Self.put(2)])
    let entries = try log.entries()
    #expect(entries.count == 2)
    disk.crash()
    #expect(disk.contents("/log/manifest") != nil)
    log = try TestLog(disk)
    #expect(try log.entries() == entries)
    // A compaction upgrades the segment.
    try log.engine.compact(0..<1, revision: log.revision, log.store)
    while log.engine.isCompacting { _ = try log.performMaintenance() }
    #expect(log.engine.writer.sealed[0].salt != nil)
    disk.crash()
    #expect(try TestLog(disk).entries() == entries)
    disk.kill()
    try disk.remove(Self.path(2))
    #expect(throws: LogError.self) { try TestLog(disk) }
  }

  @Test func `a segment made by a compaction has no torn tail`() throws {
    let disk = SimulatedDisk(seed: 5)
    let log = try Self.log(disk, entries: 1)
    let manifest = try #require(disk.contents("/log/manifest"))
    for number in 2...20 { try log.commit([Self.put(number)]) }
    try log.engine.startSegment()
    try log.engine.compact(0..<log.engine.writer.sealed.count, revision: log.revision, log.store)
    while log.engine.isCompacting { _ = try log.performMaintenance() }
    disk.kill()
    // The log without its newest segment, and without the manifest that knows of it.
    let alone = SimulatedDisk(seed: 6)
    alone.placeFolder("/log")
    alone.place("/log/manifest", manifest)
    let segment = try #require(disk.contents(Self.path(1)))
    alone.place(Self.path(1), segment)
    #expect(try TestLog(alone).revision == 20)
    alone.place(Self.path(1), Array(segment.dropLast(300)))
    #expect(throws: LogError.self) { try TestLog(alone) }
  }
}
