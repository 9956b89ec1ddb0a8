import Dispatch
import Foundation
import Glibc
import LarderServer
import Platform
import Storage
import Testing
import Wire

extension ServerTests {
  struct StopTests {
    /// What a stop may take beyond the time that is given to open answers: clients that don't close linger a second.
    private static let slack = 2.5

    @Test func `with nobody connected it is over at once, and the socket's file is gone`() throws {
      let server = try TestServer(workers: 3)
      #expect(server.hasSocketFile)
      let taken = try #require(server.stop())
      #expect(taken < Self.slack)
      #expect(!server.hasSocketFile)
      #expect(throws: TestClient.Failure.connecting(ENOENT)) { try TestClient(server.address) }
    }

    @Test(arguments: [1, 2])
    func `all that has reached the server is answered, then the notice comes, then the end`(_ workers: Int) throws {
      let server = try TestServer(workers: workers)
      let clients = try (0..<6).map { _ in try server.connect() }
      let count: UInt32 = 3_000
      for client in clients { try client.send((1...count).flatMap { Request.put("k", [1], id: $0) }) }
      let stopping = Flag()
      let thread = Thread {
        if let taken = server.stop(), taken < Self.slack { stopping.set() }
        stopping.end()
      }
      thread.start()
      for client in clients {
        for id in 1...count { #expect(try client.receive().id == id) }
        #expect(try client.receive().isNotice(.shuttingDown))
        #expect(try client.endsHere())
      }
      #expect(stopping.waitForEnd())
      #expect(stopping.isSet)
      #expect(!server.hasSocketFile)
    }

    @Test func `a connection that has said nothing yet gets the notice too`() throws {
      let server = try TestServer()
      let silent = try TestClient(server.address)
      let halfway = try TestClient(server.address)
      try halfway.send([26, 0, 0])
      _ = try server.connect()
      #expect(server.stop() != nil)
      for client in [silent, halfway] {
        #expect(try client.receive().isNotice(.shuttingDown))
        #expect(try client.endsHere())
      }
    }

    @Test func `an open answer that gets its credit is finished first`() throws {
      let server = try TestServer { $0.shutdownTimeout = .seconds(5) }
      let client = try server.connect(credit: 1)
      try fill(client, 4)
      try client.send(Request.all(id: 5))
      #expect(try client.receive().more)
      let stopping = Flag()
      let thread = Thread {
        if let taken = server.stop(), taken < 4 { stopping.set() }
        stopping.end()
      }
      thread.start()
      #expect(eventually { !server.hasSocketFile })
      #expect(client.isSilent(for: 0.1))
      // Requests go on being answered meanwhile.
      #expect(try client.pings())
      try client.send(Request.credit(1 << 20, id: 5))
      #expect(try client.receiveAnswer(5).flatMap(\.entries).map(\.text) == ["key1", "key2", "key3"])
      #expect(try client.receive().isNotice(.shuttingDown))
      #expect(try client.endsHere())
      #expect(stopping.waitForEnd())
      #expect(stopping.isSet)
    }

    @Test func `an open answer without credit is cut short when the time is up`() throws {
      let server = try TestServer { $0.shutdownTimeout = .milliseconds(300) }
      let client = try server.connect(credit: 1)
      try fill(client, 4)
      #expect(try client.call(Request.all(id: 5)).more)
      let taken = try #require(server.stop())
      #expect((0.29..<0.3 + Self.slack).contains(taken))
      #expect(try client.receive().isNotice(.shuttingDown))
      #expect(try client.endsHere())
    }

    @Test func `a client that never reads does not hold the stop up`() throws {
      let server = try TestServer { $0.shutdownTimeout = .milliseconds(300) }
      let client = try server.connect()
      try fill(client, 1, size: 1 << 20)
      try client.send((1...50).flatMap { Request.get("key0", id: $0) })
      usleep(50_000)
      let taken = try #require(server.stop())
      #expect(taken < 0.3 + Self.slack)
    }

    @Test func `a client that never closes does not hold the stop up`() throws {
      let server = try TestServer { $0.shutdownTimeout = .seconds(4) }
      let client = try server.connect()
      let taken = try #require(server.stop())
      #expect(taken < 1 + Self.slack)
      #expect(try client.receive().isNotice(.shuttingDown))
    }

    @Test func `a server that can't be made leaves nothing behind`() throws {
      let directory = NSTemporaryDirectory() + "larder-\(UInt32.random(in: 0 ... .max))"
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: directory) }
      let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
      for _ in 0..<20 {
        let good = Address.unix(path: "\(directory)/good")
        let bad = Address.unix(path: "\(directory)/nowhere/bad")
        #expect(throws: ListenError.self) { try Server(ServerConfiguration(addresses: [good, bad])) }
        #expect(!FileManager.default.fileExists(atPath: "\(directory)/good"))
      }
      // Other tests open files meanwhile, but not this many.
      #expect(
        try eventually { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count < before + 30 })
    }

    @Test(arguments: ["0.0.0.0", "::"])
    func `an address that other machines reach is served only if that is said`(_ host: String) throws {
      var configuration = ServerConfiguration(addresses: [.tcp(host: host, port: 0)])
      #expect(throws: ExposureError.self) { try Server(configuration) }
      configuration.allowsInsecureTCP = true
      let server = try Server(configuration)
      let stopped = DispatchSemaphore(value: 0)
      server.stop { stopped.signal() }
      stopped.wait()
    }

    @Test(arguments: ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "localhost"])
    func `a loopback address is served`(_ host: String) throws {
      let server = try Server(ServerConfiguration(addresses: [.tcp(host: host, port: 0)]))
      let stopped = DispatchSemaphore(value: 0)
      server.stop { stopped.signal() }
      stopped.wait()
    }

    @Test func `a configuration with a wrong store is refused`() throws {
      for (name, engine) in [("", "memory"), ("a", "nothing"), (".", "memory")] {
        #expect(throws: StorageError.self) { try ServerConfiguration.NamedStore(name: name, engine) }
      }
      var configuration = ServerConfiguration(addresses: [])
      configuration.stores = [try .init(name: "a", "log")]
      #expect(throws: StorageError.noDataDirectory(.log)) { try Server(configuration) }
    }
  }
}
