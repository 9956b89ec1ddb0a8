import Foundation
import Glibc
import Platform
import TestSupport
import Testing
import Wire

@testable import LarderServer

struct ConnectionCountTests {
  @Test func `each user and host has a limit of its own, below that of all`() {
    var limits = ServerLimits()
    (limits.connections, limits.clientConnections) = (3, 2)
    let counts = ConnectionCount()
    let (user, host) = (Peer.Origin.user(33), Peer.Origin.host("10.0.0.1"))
    #expect((0..<3).map { _ in counts.add(from: user, limits) } == [nil, nil, .tooManyOfOrigin])
    #expect((0..<2).map { _ in counts.add(from: host, limits) } == [nil, .tooMany])
    #expect(counts.open == 3 && counts.accepted == 5 && counts.refused == 2)
    counts.remove(from: user)
    #expect(counts.add(from: user, limits) == nil)
    #expect(counts.add(from: user, limits) == .tooMany)
  }

  @Test func `nine tenths of all connections are the default`() {
    var limits = ServerLimits()
    for (all, ofClient) in [(10_000, 9_000), (1, 1), (9, 9), (15, 14)] {
      limits.connections = all
      #expect(limits.connectionsOfClient == ofClient)
    }
  }
}

extension ServerTests {
  struct LimitTests {
    @Test func `a connection beyond the limit is refused, and accepted once another has closed`() throws {
      let server = try TestServer { $0.connections = 3 }
      let first = try server.connect()
      var second: TestClient? = try server.connect()
      let third = try server.connect()
      for _ in 0..<5 {
        let refused = try TestClient(server.address)
        #expect(try refused.receive().isNotice(.tooManyConnections))
        #expect(try refused.isClosed())
      }
      #expect(try first.pings() && third.pings() && second!.pings())
      second = nil
      #expect(try eventually { try first.figures()["connections"] == 2 })
      #expect(try server.connect().pings())
      #expect(try first.figures()["connections_accepted_total"] == 9)
    }

    @Test func `one client can't take all connections`() throws {
      let server = try TestServer {
        $0.connections = 20
        $0.clientConnections = 2
      }
      let clients = [try server.connect(), try server.connect()]
      let refused = try TestClient(server.address)
      let notice = try refused.receive()
      #expect(notice.isNotice(.tooManyConnections))
      #expect(notice.message.hasPrefix("this user or host has reached its limit of 2 connections"))
      #expect(try clients[0].figures()["connections_refused_total"] == 1)
    }

    @Test func `the reply to the hello states the limits`() throws {
      let server = try TestServer {
        $0.maxFrameBytes = 1 << 20
        $0.maxOpenStores = 3
        $0.maxRequestsInFlight = 5
        $0.maxKeysPerRequest = 7
      }
      let hello = try TestClient(server.address).handshake()
      #expect(
        hello
          == ServerHello(
            maxFrameSize: 1 << 20, maxValueSize: (1 << 20) - 8_192, maxKeySize: 4_096, maxOpenStores: 3,
            maxRequestsInFlight: 5, maxKeyCount: 7, name: Server.name))
    }

    @Test func `reply streams beyond the limit are refused until one has ended`() throws {
      let server = try TestServer { $0.maxRequestsInFlight = 3 }
      let client = try server.connect(credit: 1)
      try putEntries(client, 3)
      for id: UInt32 in 1...3 { #expect(try client.call(Request.all(id: id)).more) }
      #expect(try client.call(Request.all(id: 4)).isError(.tooManyRequests, id: 4))
      #expect(try client.call(Request.keys(.getMany, ["key0", "key1"], id: 5)).isError(.tooManyRequests, id: 5))
      #expect(try client.pings())
      try client.send(Request.cancel(2))
      #expect(try client.receive().isError(.cancelled, id: 2))
      #expect(try client.call(Request.all(id: 4)).more)
    }

    @Test func `stores beyond the limits of the server and of a connection are refused`() throws {
      let server = try TestServer {
        $0.stores = 3
        $0.maxOpenStores = 2
      }
      let client = try server.connect()
      #expect(try client.call(Request.create("second", id: 3)).isDone)
      #expect(try client.call(Request.create("third", id: 4)).isDone)
      #expect(try client.call(Request.create("fourth", id: 5)).isError(.tooManyStores, id: 5))
      #expect(try client.call(Request.open("second", id: 6)).body[..<2] == [2, 0])
      #expect(try client.call(Request.open("third", id: 7)).isError(.tooManyStores, id: 7))
      #expect(try client.call(Request.open("second", id: 8)).body[..<2] == [2, 0])
      #expect(try client.call(Request.make(.storeClose, store: 1, id: 9)).isDone)
      #expect(try client.call(Request.open("third", id: 10)).body[..<2] == [1, 0])
    }

    @Test func `keys beyond the limit are refused before they are decoded`() throws {
      let server = try TestServer { $0.maxKeysPerRequest = 2 }
      let client = try server.connect()
      for operation in [Operation.getMany, .deleteMany, .putMany] {
        let refused = try client.call(Request.make(operation, id: 3, [3, 0, 0, 0, 0xFF, 0xFF, 0xFF]))
        #expect(refused.isError(.illegalArgument, id: 3))
        let huge = try client.call(Request.make(operation, id: 4, [0xFF, 0xFF, 0xFF, 0xFF]))
        #expect(huge.isError(.illegalArgument, id: 4))
      }
      #expect(try client.call(Request.putMany([("a", []), ("b", [])], id: 5)).number == 1)
      #expect(try client.call(Request.keys(.getMany, ["a", "b"], id: 6)).entries.count == 2)
    }

    /// A name can fill a whole frame; the error must not repeat it.
    @Test func `no reply exceeds the maximum frame length, however long an invalid name is`() throws {
      let maxFrameSize = 1 << 16
      let server = try TestServer { $0.maxFrameBytes = maxFrameSize }
      let client = try server.connect()
      let name = [UInt8](repeating: 0xFF, count: maxFrameSize - 8)
      for operation in [Operation.storeOpen, .storeDrop] {
        let reply = try client.call(Request.make(operation, store: 0, id: 3, name))
        #expect(reply.isError(.illegalArgument, id: 3))
        #expect(reply.size - 4 <= maxFrameSize)
      }
      let reply = try client.call(Request.make(.storeCreate, store: 0, id: 4, [1, 0x61] + name.dropLast(2)))
      #expect(reply.isError(.illegalArgument, id: 4))
      #expect(reply.size - 4 <= maxFrameSize)
      #expect(try client.pings())
    }

    @Test func `no frame of a reply stream exceeds the maximum frame length`() throws {
      let maxFrameSize = 1 << 16
      let server = try TestServer { $0.maxFrameBytes = maxFrameSize }
      let client = try server.connect(credit: 1 << 30)
      // 32 records of 2,048 bytes fill the 65,536 bytes of a body exactly.
      for index in 0..<64 {
        let key = "key\(100 + index)"
        let size = 2_048 - 16 - key.utf8.count
        #expect(try client.call(Request.put(key, [UInt8](repeating: 1, count: size), id: 3)).isDone)
      }
      try client.send(Request.all(id: 4))
      let frames = try client.receiveReplyStream(4)
      #expect(frames.flatMap(\.entries).count == 64)
      for frame in frames { #expect(frame.size - 4 <= maxFrameSize) }
    }

    @Test func `when the total output exceeds its limit, the clients that stalled longest are dropped`() throws {
      let server = try TestServer {
        $0.maxTotalOutputBytes = 3 << 20
        $0.maxOutputBytes = 1 << 20
        $0.maxFrameBytes = 2 << 20
      }
      let witness = try server.connect()
      try putEntries(witness, 1, size: 1 << 20)
      let stalled = try (0..<6).map { _ in
        let client = try server.connect()
        try client.send(Request.get("key0", id: 3))
        usleep(20_000)
        return client
      }
      #expect(try eventually { try witness.figures()["output_bytes"]! <= 3 << 20 })
      #expect(try witness.figures()["output_bytes"]! > 1 << 20)
      // The first client to stall was dropped first; the last one still gets its reply.
      #expect(throws: TestClient.Failure.ended(inFrame: true)) { try stalled[0].receive() }
      #expect(try stalled[5].receive().entries.count == 1)
      #expect(try witness.pings())
    }

    /// A socket itself buffers about 200 KiB; the rest waits in the server.
    @Test func `as many stalled clients are dropped as necessary`() throws {
      let server = try TestServer {
        $0.maxTotalOutputBytes = 2 << 20
        $0.maxOutputBytes = 1 << 16
        $0.maxFrameBytes = 1 << 20
      }
      let witness = try server.connect()
      try putEntries(witness, 1, size: 260_000)
      let small = try (0..<30).map { _ in
        let client = try server.connect()
        try client.send(Request.get("key0", id: 3))
        return client
      }
      #expect(try witness.call(Request.put("key0", [UInt8](repeating: 1, count: 900_000), id: 4)).isDone)
      let large = try (0..<2).map { _ in try server.connect() }
      for client in large { try client.send(Request.get("key0", id: 5)) }
      #expect(try witness.pings())
      #expect(try witness.figures()["output_bytes"]! <= 2 << 20)
      #expect(try witness.figures()["connections"]! < 33)
      for client in large { #expect(try client.receive().entries[0].value.count == 900_000) }
      #expect(throws: TestClient.Failure.ended(inFrame: true)) { try small[0].receive() }
    }

    @Test func `stalled clients of one worker do not cause another worker's clients to be dropped`() throws {
      let server = try TestServer(workers: 2) {
        $0.maxTotalOutputBytes = 8 << 20
        $0.maxOutputBytes = 1 << 16
        $0.maxFrameBytes = 3_500_000
      }
      // Connections are assigned to workers alternately: even ones to the first, odd ones to the second.
      let clients = try (0..<8).map { _ in try server.connect(credit: 1 << 20) }
      try putEntries(clients[0], 1, size: 3 << 20)
      for index in [2, 4, 6] { try clients[index].send(Request.get("key0", id: 3)) }
      usleep(100_000)
      for _ in 0..<3 {
        for index in [1, 3, 5] {
          #expect(try clients[index].call(Request.get("key0", id: 4)).entries.first?.value.count == 3 << 20)
        }
      }
      #expect(try clients[7].pings())
    }
  }
}

extension ServerTests {
  /// The real `larderd` in a process with a low descriptor limit.
  struct DescriptorLimitTests {
    @Test func `without free descriptors, the server serves connected clients, doesn't spin, and recovers`() throws {
      let daemon = try Daemon(descriptorLimit: 40)
      defer { daemon.stop() }
      let first = try TestClient(daemon.address)
      try first.handshake()
      #expect(try first.call(Request.open("test", id: 2)).isDone)
      // The kernel completes these connections; the server does not have descriptors for all of them.
      var waiting: [TestClient] = try (0..<80).map { _ in try TestClient(daemon.address) }
      usleep(300_000)
      let before = try daemon.cpuSeconds()
      for index in 0..<50 {
        #expect(try first.call(Request.put("key\(index)", [1], id: 3)).isDone)
        usleep(20_000)
      }
      let spent = try daemon.cpuSeconds() - before
      #expect(spent < 0.1, "\(spent) s of CPU time in a second")
      waiting.removeAll()
      let late = try TestClient(daemon.address)
      try late.handshake()
      #expect(try late.pings())
      #expect(try first.figures()["connections"]! <= 4)
    }

    @Test(arguments: ["log", "directory"])
    func `without free descriptors, a durable store refuses writes that don't fit, and recovers`(
      engine: String
    ) throws {
      let daemon = try Daemon(descriptorLimit: 40, engine: engine)
      defer { daemon.stop() }
      let first = try TestClient(daemon.address)
      try first.handshake()
      #expect(try first.call(Request.open("test", id: 2)).isDone)
      var waiting: [TestClient] = try (0..<80).map { _ in try TestClient(daemon.address) }
      usleep(300_000)
      let value = [UInt8](repeating: 1, count: 30_000)
      var isRefused = false
      for index in 0..<400 where !isRefused {
        let reply = try first.call(Request.put("key\(index)", value, id: 3))
        isRefused = reply.isError(.storeFull, id: 3)
        #expect(reply.isDone || isRefused, "\(reply)")
      }
      #expect(isRefused)
      waiting.removeAll()
      #expect(try eventually { try first.call(Request.put("after", value, id: 4)).isDone })
      #expect(try first.figures(store: 1)["read_only"] == 0)
    }

    @Test func `a signal stops the server in an orderly way, with status 0 and without its socket`() throws {
      let daemon = try Daemon(descriptorLimit: 256)
      do {
        let client = try TestClient(daemon.address)
        try client.handshake()
        #expect(try client.pings())
        daemon.interrupt()
        #expect(try client.receive().isNotice(.shuttingDown))
      }
      #expect(daemon.waitForStatus() == 0)
      #expect(!FileManager.default.fileExists(atPath: daemon.path))
    }
  }
}

/// A `larderd` in a child process, with the store `test`.
private final class Daemon {
  private let folder: TemporaryFolder
  private let process = Process()

  var path: String { folder.file("s") }

  var address: Address { .unix(path: path) }

  init(descriptorLimit: Int, engine: String = "memory") throws {
    folder = try TemporaryFolder()
    let larderd = try ProjectFiles.executable("larderd").path
    try #require(FileManager.default.isExecutableFile(atPath: larderd), "\(larderd) was not built")
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = [
      "-c", "ulimit -n \(descriptorLimit); exec \"$0\" \"$@\"", larderd, "--listen", "unix:\(path)", "--data",
      folder.file("data"),
      "--store", "test=\(engine)",
    ]
    process.standardError = FileHandle.nullDevice
    try process.run()
    try #require(eventually { FileManager.default.fileExists(atPath: path) && (try? TestClient(address)) != nil })
  }

  func interrupt() { process.interrupt() }

  func stop() {
    process.terminate()
    _ = waitForStatus()
  }

  /// Returns the exit status, or `nil` if the process does not end.
  func waitForStatus() -> Int32? {
    guard eventually({ !process.isRunning }) else {
      kill(process.processIdentifier, SIGKILL)
      return nil
    }
    return process.terminationStatus
  }

  /// Returns the user and system time used so far: proc_pid_stat(5), fields 14 and 15.
  func cpuSeconds() throws -> Double {
    let stat = try String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)
    let fields = stat[stat.lastIndex(of: ")")!...].split(separator: " ")
    return (Double(fields[12])! + Double(fields[13])!) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
