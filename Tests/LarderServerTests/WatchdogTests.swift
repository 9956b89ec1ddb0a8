import Foundation
import LarderServer
import Storage
import Synchronization
import Testing

extension ServerTests {
  /// What the watchdog tells of a server whose threads work, and of one where a thread hangs.
  struct WatchdogTests {
    private final class Told: Sendable {
      let alive = Atomic<Int>(0)
      let silent = Mutex<Set<String>>([])
      var count: Int { alive.load(ordering: .relaxed) }
    }

    private func watch(_ server: TestServer, _ told: Told) -> Watchdog {
      Watchdog(server.server, every: .milliseconds(20)) {
        told.alive.add(1, ordering: .relaxed)
      } isSilent: { names in
        told.silent.withLock { $0.formUnion(names) }
      }
    }

    /// Whether the watchdog is told for some intervals that all is well.
    private func isAlive(_ told: Told) -> Bool {
      let before = told.count
      return eventually { told.count >= before + 5 }
    }

    /// Whether nothing is told for many intervals, and who is named.
    private func isSilent(_ told: Told, _ name: String) -> Bool {
      guard eventually({ told.silent.withLock { $0.contains(name) } }) else { return false }
      let before = told.count
      usleep(300_000)
      return told.count == before && told.silent.withLock { $0 } == [name]
    }

    @Test func `a server that works is told alive again and again, with connections and without`() throws {
      let sink = TestSink()
      let server = try TestServer(workers: 2, serving: [try makeStore(sink)])
      let told = Told()
      let watchdog = watch(server, told)
      #expect(isAlive(told))
      let client = try server.connect()
      #expect(isAlive(told))
      #expect(told.silent.withLock { $0.isEmpty })
      watchdog.stop()
      _ = client
    }

    @Test func `a worker that hangs silences the watchdog until it goes on`() throws {
      let store = Store(name: try StoreName("stuck"), engine: .memory)
      let server = try TestServer(workers: 2, serving: [store])
      let told = Told()
      let watchdog = watch(server, told)
      #expect(isAlive(told))
      let client = try server.connect(store: "stuck")
      store.acquire()
      try client.send(Request.make(.count, store: 1, id: 3))
      let wasSilent = isSilent(told, "worker 0")
      store.release()
      #expect(wasSilent)
      #expect(isAlive(told))
      watchdog.stop()
    }

    @Test func `a journal that hangs silences the watchdog until it goes on`() throws {
      let sink = TestSink()
      let server = try TestServer(serving: [try makeStore(sink)])
      let told = Told()
      let watchdog = watch(server, told)
      #expect(isAlive(told))
      let client = try server.connect(store: "kept")
      sink.hold()
      try client.send(Request.put("a", [1], id: 3))
      let wasSilent = isSilent(told, "the commit writer of kept")
      sink.letGo()
      #expect(wasSilent)
      #expect(isAlive(told))
      watchdog.stop()
    }

    @Test func `a journal that has failed is no reason to end the server`() throws {
      let sink = TestSink()
      let server = try TestServer(serving: [try makeStore(sink)])
      let client = try server.connect(store: "kept")
      sink.fail(.failed("the test says so"))
      _ = try client.call(Request.put("a", [1], id: 3))
      let told = Told()
      let watchdog = watch(server, told)
      #expect(isAlive(told))
      watchdog.stop()
    }

    private func makeStore(_ sink: TestSink) throws -> Store {
      Store(name: try StoreName("kept"), engine: .log, map: EntryMap(), writingTo: sink, durability: .always)
    }
  }
}
