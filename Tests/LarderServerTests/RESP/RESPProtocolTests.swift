import Glibc
import Platform
import Storage
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// The protocol of Redis, apart from what its commands do.
  @Suite struct RESPProtocolTests {
    private static let session: [[String]] = [
      ["PING"], ["SET", "key", "a value\r\nof two lines"], ["GET", "key"],
      ["MSET", "a", "1", "b", "2", "c", "3", "d", "4"],
      ["MGET", "a", "b", "c", "d", "e", "f", "g", "h"], ["INCR", "a"], ["nothing", "1"], ["GET"],
      ["DEL", "a", "b", "x"],
    ]
    private static let replies: [RESPValue] = [
      .simple("PONG"), .ok, "a value\r\nof two lines", .ok, ["1", "2", "3", "4", .null, .null, .null, .null], 2,
      .error("ERR unknown command 'nothing', with args beginning with: '1' "),
      .error("ERR wrong number of arguments for 'get' command"), 2,
    ]

    @Test func `requests that are split at any byte have the same replies`() throws {
      let server = try TestServer(speaking: .resp)
      let bytes = Self.session.flatMap(TestClient.encoded)
      for split in 1..<bytes.count {
        let client = try TestClient(server.address)
        #expect(try client.call("FLUSHDB") == .ok)
        try client.send(Array(bytes[..<split]))
        // The server reads the first part alone.
        usleep(500)
        try client.send(Array(bytes[split...]))
        #expect(try client.replies(Self.replies.count) == Self.replies, "split at \(split)")
      }
    }

    @Test func `requests that arrive byte by byte have the same replies`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      for byte in Self.session.flatMap(TestClient.encoded) { try client.send([byte]) }
      #expect(try client.replies(Self.replies.count) == Self.replies)
    }

    @Test func `ten thousand requests in a pipeline are answered in order`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      let requests = (0..<10_000).flatMap { TestClient.encoded(["INCRBY", "n", "\($0)"]) }
      try client.send(requests)
      var sum = 0
      for number in 0..<10_000 {
        sum += number
        #expect(try client.reply() == .integer(sum))
      }
    }

    @Test func `a request of many words arrives in small parts`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      let words = (0..<30_000).map { "word \($0)" }
      let request = TestClient.encoded(["MSET"] + words)
      for start in stride(from: 0, to: request.count, by: 97) {
        try client.send(Array(request[start..<min(start + 97, request.count)]))
      }
      #expect(try client.reply() == .ok)
      #expect(try client.call("GET", "word 29998") == "word 29999")
      #expect(try client.call("DBSIZE") == 15_000)
    }

    @Test func `lines are requests, with quotes and escapes`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      try client.send(Array("PING\r\n\r\n  set \"a b\" 'it\\'s'  \nget \"a\\x20b\"\nSET n \"1\\n2\"\r\nGET n\r\n".utf8))
      #expect(try client.replies(5) == [.simple("PONG"), .ok, "it's", .ok, "1\n2"])
      try client.send(Array("\"GET\" n\n\"PING\"\n".utf8))
      #expect(
        try client.replies(2) == [.error("ERR write the name of the command without quotes"), .simple("PONG")])
      try client.send(Array("GET \"a\n".utf8))
      #expect(try client.reply() == .error("ERR Protocol error: unbalanced quotes in request"))
      #expect(try client.isClosed())
    }

    @Test(arguments: [
      ("*1\r\n:1\r\n", "expected '$', got ':'"), ("*-5x\r\n", "invalid multibulk length"),
      ("*99999999\r\n", "invalid multibulk length"), ("*1\r\n$-1\r\n", "invalid bulk length"),
      ("*1\r\n$x\r\n", "invalid bulk length"),
      (
        "*2\r\n$3\r\nGET\r\n$2000000000\r\n",
        "invalid bulk length; a request has at most 16777216 bytes, limits.frame-bytes"
      ),
      ("*1000000\r\n$16000000\r\n", "invalid bulk length; a request has at most 16777216 bytes, limits.frame-bytes"),
    ])
    func `an invalid request ends the connection before anything is allocated for it`(
      _ request: String, _ message: String
    ) throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      try client.send(Array(request.utf8))
      #expect(try client.reply() == .error("ERR Protocol error: \(message)"))
      #expect(try client.isClosed())
    }

    @Test(arguments: ["POST / HTTP/1.1\r\n", "Host: localhost\r\n"])
    func `a browser that is made to send commands is disconnected`(_ line: String) throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      try client.send(Array((line + "SET a 1\r\n").utf8))
      #expect(try client.reply() == .error("ERR this is not an HTTP server"))
      #expect(try client.isClosed())
      #expect(try TestClient(server.address).call("GET", "a") == .null)
    }

    @Test func `HELLO chooses the version`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("GET", "a") == .null)
      #expect(try client.call("HELLO", "4") == .error("NOPROTO unsupported protocol version"))
      guard case .array(let fields) = try client.call("HELLO", "2") else {
        Issue.record("RESP2 has no maps")
        return
      }
      #expect(fields[0] == "server" && fields[4] == "proto" && fields[5] == 2)
      guard case .map(let fields) = try client.call("HELLO", "3", "AUTH", "default", "x", "SETNAME", "worker") else {
        Issue.record("RESP3 has maps")
        return
      }
      #expect(fields[5] == 3 && fields[11] == "master" && fields[13] == [])
      #expect(try client.call("CLIENT", "GETNAME") == "worker")
      try client.send(["GET", "a"])
      #expect(try client.receive(byteCount: 3) == Array("_\r\n".utf8))
      #expect(try client.call("RESET") == .simple("RESET"))
      #expect(try client.call("CLIENT", "GETNAME") == .null)
      #expect(try client.call("QUIT") == .ok)
      #expect(try client.isClosed())
    }

    @Test func `databases are the stores of the map, and no others`() throws {
      let databases = try [(0, "zero"), (7, "seven")].map { try #require(RESPDatabase($0, StoreName($1))) }
      let server = try TestServer(stores: ["zero", "seven", "other"], databases: databases, speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "a", "0") == .ok)
      #expect(try client.call("SELECT", "7") == .ok)
      #expect(try client.call("GET", "a") == .null)
      #expect(try client.call("SET", "a", "7") == .ok)
      #expect(
        try client.call("SELECT", "1")
          == .error("ERR DB index is out of range; resp.databases maps databases to stores"))
      #expect(try client.call("GET", "a") == "7")
      #expect(try TestClient(server.address).call("GET", "a") == "0")
      #expect(try client.call("FLUSHALL") == .ok)
      #expect(try TestClient(server.address).call("DBSIZE") == 0)
    }

    @Test func `without a map, database 0 is the only store, or an error`() throws {
      let server = try TestServer(stores: ["a", "b"], speaking: .resp)
      let client = try TestClient(server.address)
      let message = "ERR database 0 has no store; resp.databases maps databases to stores"
      #expect(try client.call("GET", "a") == .error(message))
      #expect(try client.call("PING") == .simple("PONG"))
    }

    @Test func `a store that was dropped and created again is found`() throws {
      let server = try TestServer(stores: [], speaking: .resp, alsoNative: true)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake(credit: 1 << 20)
      let client = try TestClient(server.address)
      for round in 1...2 {
        let created = try native.call(Request.create("store", id: 2))
        #expect(created.outcome == .done, "\(created)")
        #expect(try client.call("INCR", "n") == 1, "round \(round)")
        let dropped = try native.call(Request.make(.storeDrop, store: 0, id: 3, Array("store".utf8)))
        #expect(dropped.outcome == .done, "\(dropped)")
      }
    }

    @Test func `a reply waits until its commit is on the disk, or reports its failure`() throws {
      let engine = TestEngine()
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(stores: [], serving: [store], speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "old", "0") == .ok)
      engine.pause()
      let requests = [["INCR", "a"], ["MULTI"], ["INCR", "a"], ["EXEC"], ["GET", "old"]]
      try client.send(requests.flatMap(TestClient.encoded))
      #expect(client.isSilent(for: 0.05))
      engine.resume()
      #expect(try client.replies(5) == [1, .ok, .simple("QUEUED"), [2], "0"])
      engine.pause()
      try client.send([["SET", "a", "2"], ["GET", "a"], ["GET", "old"]].flatMap(TestClient.encoded))
      engine.fail(.failed("the disk is gone"))
      engine.resume()
      let replies = try client.replies(3)
      for reply in replies[..<2] {
        guard case .error(let text) = reply else {
          Issue.record("\(reply)")
          continue
        }
        #expect(text.hasPrefix("ERR "))
      }
      #expect(replies[2] == "0")
      #expect(try client.call("SET", "a", "3") == .error("READONLY \(StorageError.readOnly("the disk is gone"))"))
    }

    @Test func `a client that doesn't read stops being read, and others are served`() throws {
      let server = try TestServer(speaking: .resp) { $0.maxOutputBytes = 64 << 10 }
      let (lazy, busy) = (try TestClient(server.address), try TestClient(server.address))
      #expect(try busy.call("SET", "key", String(repeating: "v", count: 20_000)) == .ok)
      let requests = (0..<100_000).flatMap { _ in TestClient.encoded(["GET", "key"]) }
      var sent = 0
      for _ in 0..<100 where sent < requests.count {
        sent += lazy.sendWithoutBlocking(Array(requests[sent...]))
        #expect(try busy.call("DBSIZE") == 1)
      }
      #expect(sent < requests.count)
      #expect(try lazy.reply().text.count == 20_000)
    }

    @Test func `a client without the right to write gets NOPERM`() throws {
      let server = try TestServer(tcp: true, rules: [AccessRule(.tcp, .read)], speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("GET", "a") == .null)
      for request in [["SET", "a", "1"], ["INCR", "a"], ["EXPIRE", "a", "1"], ["FLUSHALL"], ["FLUSHDB"]] {
        try client.send(request)
        guard case .error(let text) = try client.reply() else {
          Issue.record("\(request)")
          continue
        }
        #expect(text.hasPrefix("NOPERM "))
      }
      let other = try TestClient(server.address)
      #expect(try other.call("PING") == .simple("PONG"))
      #expect(try client.call("CLIENT", "LIST").text.split(separator: "\n").count == 1)
      #expect(try client.call("SLOWLOG", "LEN") == .error("NOPERM this client may not see the activity of others"))
      #expect(try client.call("MULTI") == .ok)
      guard case .error(let text) = try client.call("SET", "a", "1") else {
        Issue.record("a transaction gives no right")
        return
      }
      #expect(text.hasPrefix("NOPERM "))
      guard case .error(let text) = try client.call("EXEC") else {
        Issue.record("the transaction must fail")
        return
      }
      #expect(text.hasPrefix("EXECABORT "))
    }

    @Test(arguments: [["PING"], ["GET", "a"], ["SUBSCRIBE", "a"], ["PUBLISH", "a", "x"], ["INFO"], ["HELLO", "3"]])
    func `a client that no rule admits learns nothing, and is disconnected`(_ request: [String]) throws {
      let server = try TestServer(tcp: true, rules: [AccessRule(.unix, .admin)], speaking: .resp)
      let client = try TestClient(server.address)
      try client.send(request)
      #expect(try client.reply() == .error("NOPERM a TCP client may not use this server"))
      #expect(try client.isClosed())
    }

    @Test func `numbers are in decimal digits`() {
      for number in Array(-1_100...1_100) + [9_999, 10_000, 65_536, .max, .min] {
        var bytes = ByteBuffer()
        bytes.appendRESP(number)
        #expect(bytes.toArray() == Array(":\(number)\r\n".utf8))
      }
    }

    @Test(arguments: [0, 1, 9, 10, 99, 100, 999, 1_000, 9_999, 10_000])
    func `a value of any size comes back`(_ size: Int) throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      let value = String(repeating: "v", count: size)
      #expect(try client.call("sEt", "key", value) == .ok)
      #expect(try client.call("gEt", "key") == .bulk(value))
      #expect(try client.call("STRLEN", "key") == .integer(size))
      #expect(try client.call("incrbyfloaT", "n", "0.5") == "0.5")
      for name in ["g[t", "GE\u{5}", "GET\0", "INCRBYFLOAT\0"] {
        #expect(try client.call(name, "key", "1").isError, "\(name)")
      }
    }

    @Test func `every command has a description`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      let count = RESPCommand.allCases.count - 1
      #expect(try client.call("COMMAND", "COUNT") == .integer(count))
      #expect(try client.call("COMMAND").elements.count == count)
      #expect(try client.call("COMMAND", "DOCS").elements.count == 2 * count)
      #expect(try client.call("COMMAND", "INFO", "get", "none").elements[1] == .null)
      #expect(try client.call("COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2") == ["a", "b"])
      for command in RESPCommand.allCases where command != .unknown {
        #expect(unsafe RESPCommandNames.find(Array(command.name.utf8).span.bytes).command == command)
      }
    }

    @Test func `INFO has what clients look for`() throws {
      let server = try TestServer(tcp: true, speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "a", "1", "EX", "100") == .ok)
      let text = try client.call("INFO").text
      for field in [
        "redis_version:7.2.4", "redis_mode:standalone", "role:master", "cluster_enabled:0", "loading:0",
        "db0:keys=1,expires=1,avg_ttl=0",
      ] {
        #expect(text.contains("\(field)\r\n"), "\(field)")
      }
      let server2 = try client.call("INFO", "server", "clients").text
      #expect(server2.hasPrefix("# Server") && server2.contains("# Clients") && !server2.contains("# Memory"))
    }
  }
}
