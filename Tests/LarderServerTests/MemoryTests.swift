import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  struct MemoryTests {
    @Test func `an open reply whose snapshot keeps too much ends with an error`() throws {
      let server = try TestServer { $0.maxSnapshotBytes = 1 << 20 }
      let (reader, writer) = (try server.connect(credit: 1), try server.connect())
      let value = [UInt8](repeating: 1, count: 10_000)
      let entries = (0..<64).map { (key: "key\(100 + $0)", value: value) }
      #expect(try writer.call(Request.putMany(entries, id: 3)).isDone)
      try reader.send(Request.all(id: 4))
      #expect(try reader.receive().isDone)
      for _ in 0..<2 { #expect(try writer.call(Request.putMany(entries, id: 3)).isDone) }
      #expect(try writer.figures(store: 1)["snapshots"] == 1)
      try reader.send(Request.all(id: 5))
      #expect(try reader.receive().isDone)
      for _ in 0..<2 { #expect(try writer.call(Request.putMany(entries, id: 3)).isDone) }
      let figures = try writer.figures(store: 1)
      #expect(figures["snapshots"] == 1 && figures["snapshots_ended_total"] == 1)
      #expect(figures["memory_snapshots_bytes", default: 0] <= 1_100_000)
      for id in [4, 5] as [UInt32] { try reader.send(Request.credit(1 << 20, id: id)) }
      let replies = try (0..<2).map { _ in try reader.receive() }
      let error = try #require(replies.first { $0.id == 4 })
      #expect(error.isError(.answerExpired, id: 4))
      #expect(replies.contains { $0.id == 5 && $0.isDone })
    }

    @Test func `statistics have the parts of the memory`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("key", [UInt8](repeating: 1, count: 5_000_000), id: 3)).isDone)
      let (store, all) = (try client.figures(store: 1), try client.figures())
      let parts = ["records", "hash", "order", "indexes", "expiry", "snapshots"].map { "memory_\($0)_bytes" }
      #expect(parts.reduce(0) { $0 + store[$1, default: 0] } == store["memory_bytes"])
      #expect(parts.reduce(0) { $0 + all[$1, default: 0] } == all["memory_bytes"])
      #expect(store["memory_records_bytes", default: 0] > 5_000_000)
      #expect(all["memory_code_bytes", default: 0] > 1_000_000)
      // Under a sanitizer, the C library knows nothing of the heap.
      #expect(all["memory_heap_bytes"] != nil)
      #expect(all["resident_bytes", default: 0] > 5_000_000)
    }

    @Test func `the heap is trimmed when much more is resident than is accounted for`() {
      let mebibyte = 1 << 20
      var trimming = HeapTrimming()
      func isDue(_ resident: Int, _ accounted: Int) -> Bool {
        trimming.isDue(resident: resident * mebibyte, accounted: accounted * mebibyte)
      }
      #expect(!isDue(4, 0) && !isDue(110, 100) && isDue(5, 0) && isDue(111, 100))
      // Trimming has not helped: not again until there is more.
      trimming.didTrim(resident: 111 * mebibyte, accounted: 100 * mebibyte)
      for _ in 0..<10 where isDue(112, 100) { Issue.record("the heap is trimmed again") }
      #expect(isDue(114, 100))
      // It has: the next burst is trimmed, after a pause.
      trimming.didTrim(resident: 3 * mebibyte, accounted: 0)
      #expect(!isDue(200, 0) && !isDue(200, 0) && isDue(200, 0))
      // Near the memory limit there is no pause.
      trimming.didTrim(resident: 3 * mebibyte, accounted: 0)
      let isUrgentlyDue = trimming.isDue(resident: 5 * mebibyte, accounted: 0, isUrgent: true)
      #expect(isUrgentlyDue)
    }
  }
}
