import Foundation
import LarderServer
import Storage
import Synchronization
import Testing

extension ServerTests {
  /// What the watchdog reports for a server whose threads respond, and for one with a thread that hangs.
  struct WatchdogTests {
    /// Collects the watchdog's reports.
    private final class Reports: Sendable {
      private let alive = Atomic<Int>(0)
      private let silent = Mutex<Set<Set<String>>>([])

      /// The number of reports that every thread responds.
      var aliveCount: Int { alive.load(ordering: .relaxed) }
      /// The names of the threads in each report of silent threads. A busy machine can delay any thread.
      var silentThreads: Set<Set<String>> { silent.withLock { $0 } }

      func addAlive() { alive.add(1, ordering: .relaxed) }
      func addSilent(_ names: some Sequence<String>) { _ = silent.withLock { $0.insert(Set(names)) } }
    }

    private func watch(_ server: TestServer, _ reports: Reports) -> Watchdog {
      Watchdog(server.server, every: .milliseconds(20)) {
        reports.addAlive()
      } onSilent: { names in
        reports.addSilent(names)
      }
    }

    /// Returns whether the watchdog keeps reporting that every thread responds.
    private func isAlive(_ reports: Reports) -> Bool {
      let before = reports.aliveCount
      return eventually { reports.aliveCount >= before + 5 }
    }

    /// Returns whether the watchdog reports only the named thread as silent, and nothing as alive, for many intervals.
    private func isSilent(_ reports: Reports, _ name: String) -> Bool {
      guard eventually({ reports.silentThreads.contains([name]) }) else { return false }
      let before = reports.aliveCount
      usleep(300_000)
      return reports.aliveCount == before
    }

    @Test func `a server that responds is repeatedly reported as alive, with and without connections`() throws {
      let engine = TestEngine()
      let server = try TestServer(workers: 2, serving: [try makeStore(engine)])
      let reports = Reports()
      let watchdog = watch(server, reports)
      #expect(isAlive(reports))
      let client = try server.connect()
      #expect(isAlive(reports))
      watchdog.stop()
      _ = client
    }

    @Test func `a worker that hangs silences the watchdog until it continues`() throws {
      let store = Store(name: try StoreName("stuck"), engine: .memory)
      let server = try TestServer(workers: 2, serving: [store])
      let reports = Reports()
      let watchdog = watch(server, reports)
      #expect(isAlive(reports))
      let client = try server.connect(store: "stuck")
      store.lock()
      try client.send(Request.make(.count, store: 1, id: 3))
      let wasSilent = isSilent(reports, "worker 0")
      store.unlock()
      #expect(wasSilent)
      #expect(isAlive(reports))
      watchdog.stop()
    }

    @Test func `neither a find that waits for a store nor an endless one silences the watchdog`() throws {
      let store = Store(name: try StoreName("stuck"), engine: .memory)
      let server = try TestServer(workers: 2, serving: [store])
      let reports = Reports()
      let watchdog = watch(server, reports)
      let client = try server.connect(store: "stuck")
      try client.putNumbered(1_000, size: 200)
      let witness = try server.connect(store: "stuck")
      try client.send(Request.find(id: 3, selector: hostileSelector))
      // The worker has locked the store for the snapshot by then.
      #expect(try eventually { try witness.figures()["finds"] == 1 })
      store.lock()
      let isAliveMeanwhile = isAlive(reports)
      store.unlock()
      #expect(isAliveMeanwhile)
      try witness.putMonster()
      try witness.send(Request.find(id: 4, selector: monstrousSelector))
      #expect(isAlive(reports))
      watchdog.stop()
    }

    @Test func `a commit writer that hangs silences the watchdog until it continues`() throws {
      let engine = TestEngine()
      let server = try TestServer(serving: [try makeStore(engine)])
      let reports = Reports()
      let watchdog = watch(server, reports)
      #expect(isAlive(reports))
      let client = try server.connect(store: "kept")
      engine.pause()
      try client.send(Request.put("a", [1], id: 3))
      let wasSilent = isSilent(reports, "the commit writer of kept")
      engine.resume()
      #expect(wasSilent)
      #expect(isAlive(reports))
      watchdog.stop()
    }

    @Test func `a commit writer that has failed does not make the watchdog stop the server`() throws {
      let engine = TestEngine()
      let server = try TestServer(serving: [try makeStore(engine)])
      let client = try server.connect(store: "kept")
      engine.fail(.failed("the test says so"))
      _ = try client.call(Request.put("a", [1], id: 3))
      let reports = Reports()
      let watchdog = watch(server, reports)
      #expect(isAlive(reports))
      watchdog.stop()
    }

    private func makeStore(_ engine: TestEngine) throws -> Store {
      Store(name: try StoreName("kept"), engine: .log, map: EntryMap(), writingTo: engine, durability: .always)
    }
  }
}
