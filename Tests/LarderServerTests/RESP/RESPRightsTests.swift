import Storage
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// What rights to some of the keys permit to clients of RESP.
  struct RESPRightsTests {
    private func server(_ right: Right, keyPrefix: String = "mine:") throws -> TestServer {
      try TestServer(
        tcp: true, rules: [AccessRule(.tcp, right, store: try StoreName("test"), keyPrefix: keyPrefix)],
        databases: [try #require(RESPDatabase(0, try StoreName("test")))], speaking: .resp)
    }

    private func isRefused(_ reply: RESPValue) -> Bool {
      if case .error(let text) = reply { text.hasPrefix("NOPERM ") } else { false }
    }

    /// Commands whose keys are the words that begin with `@`, without that.
    private static let reads = [
      "GET @a", "MGET @a @b", "STRLEN @a", "GETRANGE @a 0 1", "EXISTS @a @b", "TTL @a", "TYPE @a", "TOUCH @a @b",
      "OBJECT ENCODING @a", "MEMORY USAGE @a", "LLEN @a", "WATCH @a @b",
    ]
    private static let writes = [
      "SET @a 1", "SET @a 1 GET", "MSET @a 1 @b 2", "MSETNX @a 1 @b 2", "APPEND @a 1", "INCR @c", "GETDEL @a",
      "GETEX @a EX 9", "DEL @a @b", "UNLINK @a @b", "COPY @a @b", "RENAME @a @b", "RENAMENX @a @b", "EXPIRE @a 9",
      "PERSIST @a", "DELIFEQ @a 1", "SETRANGE @a 1 x",
      "EVAL script 1 @a 1",
    ]
    private static let onAllKeys = [
      "DBSIZE", "KEYS mine:*", "SCAN 0 MATCH mine:*", "RANDOMKEY", "FLUSHDB", "FLUSHALL", "PUBLISH mine:a 1",
      "SUBSCRIBE mine:a",
      "PSUBSCRIBE *", "PUBSUB CHANNELS", "SLOWLOG GET", "CONFIG SET notify-keyspace-events KEA",
    ]

    private func words(_ command: String, _ prefixes: [String]) -> [String] {
      var remaining = prefixes
      return command.split(separator: " ").map { word in
        guard word.hasPrefix("@") else { return String(word) }
        let prefix = remaining.count > 1 ? remaining.removeFirst() : remaining[0]
        return prefix + word.dropFirst()
      }
    }

    @Test(arguments: [Right.read, .write])
    func `commands may use the keys that a rule grants, and no others`(right: Right) throws {
      let server = try server(right)
      func call(_ command: String, _ prefixes: String...) throws -> RESPValue {
        let client = try TestClient(server.address)
        try client.send(words(command, prefixes))
        return try client.reply()
      }
      for command in Self.reads + Self.writes {
        let isPermitted = right == .write || Self.reads.contains(command)
        #expect(try isRefused(call(command, "mine:")) == !isPermitted, "\(command)")
        #expect(try isRefused(call(command, "theirs:")), "\(command)")
        guard command.split(separator: " ").filter({ $0.hasPrefix("@") }).count > 1 else { continue }
        #expect(try isRefused(call(command, "mine:", "theirs:")), "\(command)")
        #expect(try isRefused(call(command, "theirs:", "mine:")), "\(command)")
      }
      for command in Self.onAllKeys { #expect(try isRefused(call(command, "")), "\(command)") }
    }

    @Test func `a client without a right can't tell which databases and stores there are`() throws {
      let server = try TestServer(
        stores: ["public", "secret"], tcp: true,
        rules: [AccessRule(.tcp, .read, store: try StoreName("public"), keyPrefix: "mine:")],
        databases: try ["public", "secret", "absent"].enumerated().map {
          try #require(RESPDatabase($0.offset, try StoreName($0.element)))
        }, speaking: .resp)
      let client = try TestClient(server.address)
      var replies: [String] = []
      for database in 1...4 {
        guard case .error(let text) = try client.call("SELECT", "\(database)") else {
          Issue.record("database \(database) is for others")
          continue
        }
        replies.append(text.replacing("\(database)", with: "N"))
      }
      #expect(Set(replies) == ["NOPERM a TCP client may not use database N"])
      // It stays where it was.
      #expect(try client.call("GET", "mine:a") == .null)
      for words in [["SET", "mine:a", "1"], ["GET", "theirs"], ["FLUSHALL"], ["FLUSHDB"], ["SELECT", "1"], ["INFO"]] {
        try client.send(words)
        switch try client.reply() {
        case .error(let text), .bulk(let text):
          for name in ["public", "secret", "absent"] { #expect(!text.contains(name), "\(words): \(text)") }
        case let reply: Issue.record("\(words): \(reply)")
        }
      }
    }

    @Test func `lines follow the same rules`() throws {
      let server = try server(.write)
      let client = try TestClient(server.address)
      for (line, isPermitted) in [
        ("SET mine:a 1", true), ("GET 'mine:a'", true), ("GET theirs:a", false), ("GET \"\\x74heirs:a\"", false),
        ("MGET mine:a theirs:a", false),
      ] {
        try client.send(Array("\(line)\r\n".utf8))
        #expect(try isRefused(client.reply()) == !isPermitted, "\(line)")
      }
    }

    @Test func `a transaction has only commands that are permitted when it is executed`() throws {
      let server = try server(.write)
      let client = try TestClient(server.address)
      #expect(try client.call("MULTI") == .ok && client.call("SET", "mine:a", "1") == .simple("QUEUED"))
      #expect(try client.call("EXEC") == [.ok])
      // One that is refused aborts it.
      #expect(try client.call("MULTI") == .ok && client.call("SET", "mine:a", "2") == .simple("QUEUED"))
      #expect(try isRefused(client.call("GET", "theirs:a")))
      #expect(try client.call("EXEC") == .error("EXECABORT Transaction discarded because of previous errors."))
      // And so does a change of rights.
      #expect(try client.call("MULTI") == .ok && client.call("SET", "mine:a", "3") == .simple("QUEUED"))
      let rule = AccessRule(.tcp, .write, store: try StoreName("test"), keyPrefix: "mine:b")
      try server.server.change(stores: [], limits: ServerLimits(), rules: [rule])
      #expect(try client.call("EXEC") == .error("EXECABORT Transaction discarded because of previous errors."))
      #expect(try client.call("MULTI") == .ok && client.call("FLUSHALL") == .simple("QUEUED"))
      guard case .array(let replies) = try client.call("EXEC") else {
        Issue.record("EXEC has a reply for each command")
        return
      }
      #expect(isRefused(replies[0]))
      #expect(try isRefused(client.call("GET", "mine:a")))
    }
  }
}
