import TestSupport
import Testing

@testable import Storage

struct LogEngineTests {
  @Test func `everything written is still there after a restart`() throws {
    let disk = SimulatedDisk(seed: 1)
    var model: [String: ModelEntry] = [:]
    do {
      let log = try TestLog(disk)
      for number in 1...200 {
        let operation = WriteOperation.put(
          key: "key \(number % 70)", value: [UInt8](repeating: UInt8(number), count: number), kind: .single, expiry: 0)
        try log.commit([operation])
        operation.apply(to: &model, revision: UInt64(number))
      }
      try log.commit([.delete(key: "key 3")])
      model["key 3"] = nil
    }
    disk.crash()
    let log = try TestLog(disk)
    #expect(try log.entries() == model)
    #expect(log.revision == 201)
    #expect(log.recovery.truncatedBytes == 0)
    log.store.access { $0.validateOrder() }
  }

  @Test(arguments: [true, false])
  func `small commits don't overwrite large ones, nor the other way around`(syncs: Bool) throws {
    let disk = SimulatedDisk(seed: 3)
    let log = try TestLog(disk, configuration: LogConfiguration())
    // Small commits write zeroes after themselves, up to a multiple of 64 KiB.
    for size in [1, 30_000, 33_000, 1, 100_000, 20_000, 70_000, 31_000, 1, 1, 300_000, 1] {
      let value = [UInt8](repeating: 0xFF, count: size)
      try log.commit([.put(key: "\(log.revision)", value: value, kind: .single, expiry: 0)], syncs: syncs)
    }
    try log.engine.sync()
    let entries = try log.entries()
    disk.crash()
    let reopened = try TestLog(disk, configuration: LogConfiguration())
    #expect(try reopened.entries() == entries)
    #expect(reopened.recovery.truncatedBytes == 0)
  }

  @Test func `on a nearly full disk, a smaller segment is used`() throws {
    let disk = SimulatedDisk(seed: 2)
    let log = try TestLog(disk)
    while log.engine.writer.byteCount < 20_000 {
      try log.commit([.put(key: "\(log.revision)", value: [UInt8](repeating: 1, count: 100), kind: .single, expiry: 0)])
    }
    #expect(log.engine.writer.segmentSize > 2_048)
    disk.kill()
    disk.byteLimit = 0
    let full = try TestLog(disk)
    #expect(full.engine.reservedByteCount == 0)
    disk.byteLimit = disk.bytesTaken + 2_100
    try full.engine.reserveSpace()
    #expect(full.engine.reservedByteCount > 0)
    disk.byteLimit = .max
    try full.commit([.put(key: "new", value: [2], kind: .single, expiry: 0)])
    let entries = try full.entries()
    disk.crash()
    #expect(try TestLog(disk).entries() == entries)
  }
}

extension EntryMap {
  /// Traps unless the order and the hash index agree.
  func validateOrder() {
    var previous: [UInt8]?
    let visited = order.visit(0..<order.count, reverse: false, root: order.root, in: arena.records) { handle in
      let key = record(handle).key
      precondition(find(key, hash: hashIndex.hash(key)) == handle, "the indexes disagree about a record")
      let bytes = unsafe Array(UnsafeRawBufferPointer(start: key.start, count: key.count))
      if let previous { precondition(previous.lexicographicallyPrecedes(bytes), "keys are out of order") }
      previous = bytes
      return true
    }
    precondition(visited == order.count, "the order's count is wrong")
  }
}
