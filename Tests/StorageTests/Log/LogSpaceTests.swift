import Platform
import TestSupport
import Testing

@testable import Storage

/// Logs on disks that are full, or nearly so.
struct LogSpaceTests {
  /// The usual sizes, divided by eight.
  private static let configuration = {
    var configuration = LogConfiguration()
    (configuration.minSegmentSize, configuration.reserveThreshold) = (1 << 17, 1 << 19)
    return configuration
  }()

  /// Does what a commit writer does on a full disk, twice a second.
  private static func retry(_ log: TestLog) throws {
    for _ in 0..<5_000 where try !log.performMaintenance() { break }
    do { try log.engine.reserveSpace() } catch { #expect(error == .noSpace) }
  }

  /// Overwrites ten entries until the log has at least that size, on a disk that is then full.
  private static func garbage(_ disk: SimulatedDisk, byteCount: Int) throws -> TestLog {
    let log = try TestLog(disk, configuration: configuration)
    var number = 0
    func commit() throws {
      number += 1
      let value = [UInt8](repeating: UInt8(number & 255), count: 5_000)
      try log.commit([.put(key: "key \(number % 10)", value: number % 10 == 0 ? value : [1], kind: .single, expiry: 0)])
    }
    while log.engine.writer.byteCount < byteCount { try commit() }
    disk.byteLimit = disk.bytesTaken
    while log.engine.reservedByteCount >= 25_000 { try commit() }
    return log
  }

  @Test(arguments: [212_000, 19_000])
  func `a log that is nearly all garbage accepts writes again as soon as there is some space`(made: Int) throws {
    let disk = SimulatedDisk(seed: 1)
    let log = try Self.garbage(disk, byteCount: 560_000)
    let entries = try log.entries()
    for _ in 0..<4 { try Self.retry(log) }
    disk.byteLimit += made
    for _ in 0..<3 { try Self.retry(log) }
    #expect(log.engine.writer.byteCount < 310_000, "\(log.engine.figures)")
    #expect(log.engine.reservedByteCount >= 1 << 16, "\(log.engine.figures)")
    #expect(try log.entries() == entries)
    disk.crash()
    #expect(try TestLog(disk, configuration: Self.configuration).entries() == entries)
  }

  @Test func `entries can be deleted on a full disk`() throws {
    let folder = try TemporaryFolder()
    let files = ObservedFiles()
    var map = EntryMap()
    let (engine, _) = try LogEngine.open(folder.path, files: files, now: 0, unixNow: 0, into: &map)
    let store = Store(name: try StoreName("full"), engine: .log, map: map, writingTo: engine, durability: .none)
    defer { store.close() }
    files.setFull(true)
    var number = 0
    for byteCount in [10_000, 100, 0] {
      do {
        while true {
          try store.putWhenThereIsSpace("key \(number)".bytes, [UInt8](repeating: 1, count: byteCount))
          number += 1
        }
      } catch let error as StorageError {
        #expect(error == .diskFull)
      }
    }
    #expect(number > 100)
    for deleted in 0..<100 {
      let key = "key \(deleted)".bytes
      let isDeleted = try store.access { map in
        unsafe try map.delete(key.span.bytes, revision: map.revisions.last + 1, now: 0)
      }
      #expect(isDeleted)
    }
    store.commitWriter!.wake()
  }

  @Test func `a log that is opened on a full disk has space for deletes`() throws {
    let disk = SimulatedDisk(seed: 1)
    var log = try TestLog(disk, configuration: LogConfiguration())
    disk.byteLimit = disk.bytesTaken
    let limit = LogConfiguration().minSegmentSize / 32
    while log.engine.reservedByteCount >= limit + 1_100 {
      let key = "key \(log.revision)"
      try log.commit([.put(key: key, value: [UInt8](repeating: 1, count: 1_000), kind: .single, expiry: 0)])
    }
    disk.kill()
    log = try TestLog(disk, configuration: LogConfiguration())
    #expect(log.engine.reservedByteCount >= 10_000)
    try log.commit((1...100).map { .delete(key: "key \($0)") })
    let entries = try log.entries()
    disk.crash()
    #expect(try TestLog(disk, configuration: LogConfiguration()).entries() == entries)
  }
}
