import Dispatch
import Foundation
import Glibc
import Platform
import Storage
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Starting a server, and stopping it in an orderly way.
  struct StartAndStopTests {
    /// The time that stopping may take beyond the timeout for open reply streams. The server waits up to a second for
    /// clients that do not close.
    private static let slack = 2.5

    @Test func `without connections, the server stops at once, and the socket's file is gone`() throws {
      let server = try TestServer(workers: 3)
      #expect(server.socketFileExists)
      let duration = try #require(server.stop())
      #expect(duration < Self.slack)
      #expect(!server.socketFileExists)
      #expect(throws: TestClient.Failure.connecting(ENOENT)) { try TestClient(server.address) }
    }

    @Test(arguments: [1, 2])
    func `a stopping server replies to every received request, then sends a notice and closes`(_ workers: Int)
      throws
    {
      let server = try TestServer(workers: workers)
      let clients = try (0..<6).map { _ in try server.connect() }
      let count: UInt32 = 3_000
      for client in clients { try client.send((1...count).flatMap { Request.put("k", [1], id: $0) }) }
      let stopping = Flag()
      let thread = Thread {
        if let duration = server.stop(), duration < Self.slack { stopping.set() }
        stopping.end()
      }
      thread.start()
      for client in clients {
        for id in 1...count { #expect(try client.receive().id == id) }
        #expect(try client.receive().isNotice(.shuttingDown))
        #expect(try client.isClosed())
      }
      #expect(stopping.waitForEnd())
      #expect(stopping.isSet)
      #expect(!server.socketFileExists)
    }

    @Test func `a connection that has sent no hello yet gets the notice, too`() throws {
      let server = try TestServer()
      let silent = try TestClient(server.address)
      let partial = try TestClient(server.address)
      try partial.send([26, 0, 0])
      _ = try server.connect()
      #expect(server.stop() != nil)
      for client in [silent, partial] {
        #expect(try client.receive().isNotice(.shuttingDown))
        #expect(try client.isClosed())
      }
    }

    @Test func `an open reply stream that gets its credit is finished first`() throws {
      let server = try TestServer { $0.shutdownTimeout = .seconds(5) }
      let client = try server.connect(credit: 1)
      try putEntries(client, 4)
      try client.send(Request.all(id: 5))
      #expect(try client.receive().more)
      let stopping = Flag()
      let thread = Thread {
        if let duration = server.stop(), duration < 4 { stopping.set() }
        stopping.end()
      }
      thread.start()
      #expect(eventually { !server.socketFileExists })
      #expect(client.isSilent(for: 0.1))
      // The server still replies to requests in the meantime.
      #expect(try client.pings())
      try client.send(Request.credit(1 << 20, id: 5))
      #expect(try client.receiveReplyStream(5).flatMap(\.entries).map(\.text) == ["key1", "key2", "key3"])
      #expect(try client.receive().isNotice(.shuttingDown))
      #expect(try client.isClosed())
      #expect(stopping.waitForEnd())
      #expect(stopping.isSet)
    }

    @Test func `an open reply stream without credit is cut short after the timeout`() throws {
      let server = try TestServer { $0.shutdownTimeout = .milliseconds(300) }
      let client = try server.connect(credit: 1)
      try putEntries(client, 4)
      #expect(try client.call(Request.all(id: 5)).more)
      let duration = try #require(server.stop())
      #expect((0.29..<0.3 + Self.slack).contains(duration))
      #expect(try client.receive().isNotice(.shuttingDown))
      #expect(try client.isClosed())
    }

    @Test func `a client that never reads does not delay the stop`() throws {
      let server = try TestServer { $0.shutdownTimeout = .milliseconds(300) }
      let client = try server.connect()
      try putEntries(client, 1, size: 1 << 20)
      try client.send((1...50).flatMap { Request.get("key0", id: $0) })
      usleep(50_000)
      let duration = try #require(server.stop())
      #expect(duration < 0.3 + Self.slack)
    }

    @Test func `a client that never closes does not delay the stop`() throws {
      let server = try TestServer { $0.shutdownTimeout = .seconds(4) }
      let client = try server.connect()
      let duration = try #require(server.stop())
      #expect(duration < 1 + Self.slack)
      #expect(try client.receive().isNotice(.shuttingDown))
    }

    @Test func `a server that fails to start leaves nothing behind`() throws {
      let folder = try TemporaryFolder()
      let before = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
      for _ in 0..<20 {
        let good = Address.unix(path: folder.file("good"))
        let bad = Address.unix(path: folder.file("nowhere/bad"))
        #expect(throws: ListenError.self) { try Server(ServerConfiguration(addresses: [good, bad])) }
        #expect(!FileManager.default.fileExists(atPath: folder.file("good")))
      }
      // Other tests may open files at the same time, but not this many.
      #expect(
        try eventually { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count < before + 30 })
    }

    @Test func `an inherited socket is used once, even if its address is listed twice`() throws {
      let folder = try TemporaryFolder()
      let address = Address.unix(path: folder.file("s"))
      let first = try ListeningSocket.open(address, removesFile: false)
      var configuration = ServerConfiguration(addresses: [address, address])
      configuration.kept = [
        (address, InheritedSocket(name: first.preservedName, descriptor: dup(first.descriptor.number)))
      ]
      _ = consume first
      #expect(throws: ListenError.self) { try Server(configuration) }
    }

    @Test(arguments: ["0.0.0.0", "::"])
    func `an address that other machines can reach is served only if explicitly allowed`(_ host: String) throws {
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

    @Test func `a configuration with an invalid store is refused`() throws {
      for (name, engine) in [("", "memory"), ("a", "nothing"), (".", "memory")] {
        #expect(throws: StorageError.self) { try ServerConfiguration.NamedStore(name: name, engine) }
      }
      var configuration = ServerConfiguration(addresses: [])
      configuration.stores = [try .init(name: "a", "log")]
      #expect(throws: StorageError.noDataDirectory(.log)) { try Server(configuration) }
    }
  }
}
