import Foundation
import Platform
import SimulatedDisk
import Testing

@testable import Storage

struct LogSinkTests {
  @Test func `what was written is there again after a start`() throws {
    let disk = SimulatedDisk(seed: 1)
    var model: [String: Plain] = [:]
    do {
      let log = try OpenLog(disk)
      for number in 1...200 {
        let work = Work.put(
          key: "key \(number % 70)", value: [UInt8](repeating: UInt8(number), count: number), kind: .single, expiry: 0)
        try log.commit([work])
        work.apply(to: &model, revision: UInt64(number))
      }
      try log.commit([.delete(key: "key 3")])
      model["key 3"] = nil
    }
    disk.crash()
    let log = try OpenLog(disk)
    #expect(try log.entries() == model)
    #expect(log.revision == 201)
    #expect(log.recovery.cutBytes == 0)
    log.store.access { $0.validateOrder() }
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_LOG_SPEED"] != nil))
  func `a million entries are read in a third of a second`() throws {
    let folder = NSTemporaryDirectory() + "larder-log-\(UInt32.random(in: 0 ... .max))"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    do {
      let log = try OpenLog(LocalFileSystem(), folder: folder, sizes: LogSizes())
      let value = [UInt8](repeating: 7, count: 100)
      var random = SeededGenerator(seed: 3)
      for _ in 0..<100 {
        var works: [Work] = []
        for _ in 0..<10_000 {
          let key = String(random.next(), radix: 16)
          let padded = String(repeating: "0", count: 16 - key.count) + key
          works.append(.put(key: padded, value: value, kind: .single, expiry: 0))
        }
        try log.commit(works)
      }
      try log.sink.close()
    }
    for _ in 0..<4 {
      let start = ContinuousClock.now
      let log = try OpenLog(LocalFileSystem(), folder: folder, sizes: LogSizes())
      print("opened \(log.recovery) in \(ContinuousClock.now - start)")
    }
  }
}

extension EntryMap {
  /// Traps unless the order and the hash index agree.
  func validateOrder() {
    var previous: [UInt8]?
    let visited = order.visit(0..<order.count, reverse: false, root: order.root, in: arena) { handle in
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
