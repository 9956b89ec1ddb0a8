import Foundation
import LarderServer
import Storage
import Synchronization
import Testing
import Wire

extension ServerTests {
  /// A store whose disk is a remote thing that comes and goes.
  @Suite struct RemoteEngineTests {
    private static let outages = RemoteDisk.Mode.allCases.filter { $0 != .working }
    private let disk = RemoteDisk()

    private func makeServer(_ durability: Durability = .always, patience: Double = 0.2) throws -> TestServer {
      let server = try TestServer(engines: .builtIn + [.remote(disk, patience: patience)]) {
        $0.shutdownTimeout = .seconds(1)
      }
      let creation = Request.create("remote", engine: "remote?durability=\(durability)", id: 9)
      #expect(try server.connect().call(creation).isDone)
      return server
    }

    private func isUnavailable(_ client: TestClient) throws -> Bool {
      try client.figures(store: 1)["engine_unavailable"] == 1
    }

    @Test(arguments: Self.outages)
    func `a store refuses writes while its disk is away, goes on reading, and comes back by itself`(
      _ outage: RemoteDisk.Mode
    ) throws {
      let server = try makeServer()
      let (writer, other) = (try server.connect(store: "remote"), try server.connect(store: "remote"))
      #expect(try writer.call(Request.put("before", [1], id: 3)).isDone)
      #expect(try !isUnavailable(other))
      disk.setMode(outage)
      try writer.send(Request.put("pending", [1], id: 4))
      #expect(try eventually { try isUnavailable(other) })
      for request in [Request.put("refused", [1], id: 5), Request.delete("before", id: 5)] {
        let refusal = try other.call(request)
        #expect(refusal.outcome == .notExecuted && refusal.code == .tooManyRequests)
        #expect(refusal.message.contains("resumes by itself: the remote disk"), "\(refusal.message)")
      }
      #expect(try other.call(Request.get("before", id: 6)).isDone)
      #expect(writer.isSilent(for: 0.3))
      disk.setMode(.working)
      #expect(try writer.receive().isDone)
      #expect(try eventually { try !isUnavailable(other) })
      #expect(try other.call(Request.put("after", [1], id: 7)).isDone)
      #expect(try other.figures(store: 1)["read_only"] == 0)
      for key in ["before", "pending", "after"] { #expect(disk.offsets(of: key).count == 1, "\(key)") }
      #expect(disk.offsets(of: "refused").isEmpty)
    }

    @Test func `writes that were accepted before the outage was known are kept, in their order`() throws {
      let server = try makeServer(patience: 0.5)
      let clients = try (0..<3).map { _ in try server.connect(store: "remote") }
      disk.setMode(.stalled)
      for (index, client) in clients.enumerated() {
        try client.send(Request.put("key \(index)", [1], id: 3))
        if index == 0 { #expect(eventually { disk.requestCount == 1 }) }
        usleep(20_000)
      }
      let witness = try server.connect(store: "remote")
      #expect(try eventually { try isUnavailable(witness) })
      for client in clients { #expect(client.isSilent(for: 0.02)) }
      disk.setMode(.working)
      for client in clients { #expect(try client.receive().isDone) }
      let offsets = (0..<3).map { disk.offsets(of: "key \($0)") }
      #expect(offsets.allSatisfy { $0.count == 1 } && offsets.map { $0[0] } == offsets.map { $0[0] }.sorted())
    }

    @Test func `every acknowledged write is on the disk once after many outages`() throws {
      let server = try makeServer(patience: 0.05)
      let isDone = Atomic(false)
      let acknowledged = Mutex<[String]>([])
      let refusals = Atomic(0)
      let group = DispatchGroup()
      for writer in 0..<4 {
        group.enter()
        Thread.detachNewThread {
          defer { group.leave() }
          guard let client = try? server.connect(store: "remote") else {
            _ = Issue.record("not connected")
            return
          }
          for number in 0... {
            let key = "<\(writer) \(number)>"
            guard let reply = try? client.call(Request.put(key, [1], id: 3)) else {
              _ = Issue.record("no reply to \(key)")
              return
            }
            if reply.isDone {
              acknowledged.withLock { $0.append(key) }
              usleep(2_000)
            } else if reply.code == .tooManyRequests {
              refusals.add(1, ordering: .relaxed)
              usleep(10_000)
            } else {
              Issue.record("\(reply)")
            }
            if isDone.load(ordering: .relaxed) { break }
          }
        }
      }
      for outage in Self.outages + Self.outages {
        let count = acknowledged.withLock { $0.count }
        disk.setMode(outage)
        usleep(120_000)
        disk.setMode(.working)
        #expect(eventually { acknowledged.withLock { $0.count } > count + 4 })
      }
      isDone.store(true, ordering: .relaxed)
      #expect(group.wait(timeout: .now() + 10) == .success)
      let keys = acknowledged.withLock { $0 }
      #expect(refusals.load(ordering: .relaxed) > 0)
      for key in keys { #expect(disk.offsets(of: key).count == 1, "\(key)") }
    }

    @Test func `a write that was acknowledged before it is written arrives after the outage`() throws {
      let server = try makeServer(.none)
      let client = try server.connect(store: "remote")
      disk.setMode(.absent)
      #expect(try client.call(Request.put("early", [1], id: 3)).isDone)
      #expect(try eventually { try isUnavailable(client) })
      #expect(try client.call(Request.put("late", [1], id: 4)).code == .tooManyRequests)
      disk.setMode(.working)
      #expect(eventually { disk.offsets(of: "early").count == 1 })
      #expect(server.stop() != nil)
      #expect(disk.offsets(of: "early").count == 1 && disk.offsets(of: "late").isEmpty)
    }

    @Test(arguments: [RemoteDisk.Mode.absent, .stalled])
    func `a disk that is away does not make the watchdog restart the server`(_ outage: RemoteDisk.Mode) throws {
      let server = try makeServer(patience: 1)
      let client = try server.connect(store: "remote")
      let aliveCount = Atomic(0)
      let silent = Mutex<[String]>([])
      disk.setMode(outage)
      // An interval that a busy machine's threads keep, but that is shorter than a call of the engine.
      let watchdog = Watchdog(server.server, every: .milliseconds(200)) {
        aliveCount.add(1, ordering: .relaxed)
      } onSilent: { names in
        silent.withLock { $0 += names }
      }
      try client.send(Request.put("pending", [1], id: 3))
      usleep(1_800_000)
      watchdog.stop()
      #expect(aliveCount.load(ordering: .relaxed) >= 5)
      #expect(silent.withLock { $0 } == [])
      disk.setMode(.working)
      #expect(try client.receive().isDone)
    }

    @Test(arguments: Self.outages)
    func `a server can be stopped during an outage, and acknowledges nothing then`(_ outage: RemoteDisk.Mode) throws {
      let server = try makeServer()
      let (writer, other) = (try server.connect(store: "remote"), try server.connect(store: "remote"))
      disk.setMode(outage)
      try writer.send(Request.put("pending", [1], id: 3))
      #expect(try eventually { try isUnavailable(other) })
      let duration = try #require(server.stop())
      #expect(duration < 4)
      let reply = try? writer.receive(within: 1)
      #expect(reply?.isDone != true)
      disk.setMode(.working)
    }
  }
}
