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
