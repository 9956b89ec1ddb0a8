import Glibc
import Platform
import Storage
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Messages to subscribers, and what these are told of changes.
  @Suite struct RESPChannelTests {
    @Test(arguments: [1, 4])
    func `a message goes to all that subscribe, in the order of its publisher`(_ workers: Int) throws {
      let server = try TestServer(workers: workers, speaking: .resp)
      let subscribers = try (0..<8).map { _ in try TestClient(server.address) }
      for (index, subscriber) in subscribers.enumerated() {
        if index % 2 == 1 { _ = try subscriber.call("HELLO", "3") }
        let reply = try subscriber.call("SUBSCRIBE", "news")
        #expect(reply == (index % 2 == 1 ? .push(["subscribe", "news", 1]) : ["subscribe", "news", 1]))
      }
      let publisher = try TestClient(server.address)
      for number in 0..<1_000 { try publisher.send(["PUBLISH", "news", "\(number)"]) }
      for _ in 0..<1_000 { #expect(try publisher.reply() == 8) }
      #expect(try publisher.call("PUBLISH", "other", "x") == 0)
      for (index, subscriber) in subscribers.enumerated() {
        for number in 0..<1_000 {
          let message: [RESPValue] = ["message", "news", .bulk("\(number)")]
          #expect(try subscriber.reply() == (index % 2 == 1 ? .push(message) : .array(message)))
        }
      }
    }

    @Test func `a client of RESP2 that subscribes may do little else`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      try client.send(["SUBSCRIBE", "a", "b", "a"])
      #expect(try client.replies(3) == [["subscribe", "a", 1], ["subscribe", "b", 2], ["subscribe", "a", 2]])
      #expect(try client.call("PSUBSCRIBE", "n*") == ["psubscribe", "n*", 3])
      #expect(try client.call("PING") == ["pong", ""])
      #expect(try client.call("PING", "x") == ["pong", "x"])
      #expect(
        try client.call("GET", "a")
          == .error(
            "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
              + "context"))
      #expect(try client.call("UNSUBSCRIBE", "a") == ["unsubscribe", "a", 2])
      #expect(try client.call("UNSUBSCRIBE", "never") == ["unsubscribe", "never", 2])
      #expect(try client.call("PUNSUBSCRIBE") == ["punsubscribe", "n*", 1])
      #expect(try client.call("PUNSUBSCRIBE") == ["punsubscribe", .null, 1])
      #expect(try client.call("UNSUBSCRIBE") == ["unsubscribe", "b", 0])
      #expect(try client.call("GET", "a") == .null)
      #expect(try client.call("SUBSCRIBE", "a") == ["subscribe", "a", 1])
      #expect(try client.call("RESET") == .simple("RESET"))
      #expect(try client.call("PUBLISH", "a", "x") == 0)
    }

    @Test func `a client of RESP3 goes on with commands, and gets its own message`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      _ = try client.call("HELLO", "3")
      #expect(try client.call("SUBSCRIBE", "a") == .push(["subscribe", "a", 1]))
      #expect(try client.call("PSUBSCRIBE", "[ab]") == .push(["psubscribe", "[ab]", 2]))
      #expect(try client.call("SET", "key", "1") == .ok)
      #expect(try client.call("PUBLISH", "a", "x") == 2)
      #expect(
        try client.replies(2) == [.push(["message", "a", "x"]), .push(["pmessage", "[ab]", "a", "x"])])
      #expect(try client.call("MULTI") == .ok)
      #expect(try client.call("PUBLISH", "b", "y") == .simple("QUEUED"))
      #expect(
        try client.call("SUBSCRIBE", "c") == .error("ERR SUBSCRIBE is not allowed in transactions"))
      #expect(try client.call("DISCARD") == .ok)
      #expect(try client.call("PUBSUB", "CHANNELS") == ["a"])
      #expect(try client.call("PUBSUB", "CHANNELS", "b*") == [])
      #expect(try client.call("PUBSUB", "NUMSUB", "a", "b") == ["a", 1, "b", 0])
      #expect(try client.call("PUBSUB", "NUMPAT") == 1)
    }

    @Test func `nothing arrives after the end of a subscription, and a closed connection has none`() throws {
      let server = try TestServer(workers: 2, speaking: .resp)
      let publisher = try TestClient(server.address)
      do {
        let client = try TestClient(server.address)
        #expect(try client.call("SUBSCRIBE", "a") == ["subscribe", "a", 1])
        #expect(try publisher.call("PUBLISH", "a", "x") == 1)
        try client.send(["UNSUBSCRIBE"])
        for number in 0..<50 { _ = try publisher.call("PUBLISH", "a", "\(number)") }
        var last = try client.reply()
        while last.elements.first == "message" { last = try client.reply() }
        #expect(last == ["unsubscribe", "a", 0])
        #expect(try client.call("PING") == .simple("PONG"))
        #expect(try client.call("SUBSCRIBE", "a") == ["subscribe", "a", 1])
      }
      #expect(try eventually { try publisher.call("PUBLISH", "a", "x") == 0 })
      #expect(try publisher.call("PUBSUB", "CHANNELS") == [])
    }

    @Test func `a subscriber that doesn't read is disconnected, and others are served`() throws {
      let server = try TestServer(workers: 2, speaking: .resp)
      let (lazy, eager) = (try TestClient(server.address), try TestClient(server.address))
      for client in [lazy, eager] { #expect(try client.call("SUBSCRIBE", "a") == ["subscribe", "a", 1]) }
      let publisher = try TestClient(server.address)
      let text = String(repeating: "x", count: 1 << 20)
      var count = 0
      while try publisher.call("PUBLISH", "a", text) == 2, count < 500 {
        count += 1
        #expect(try eager.reply() == ["message", "a", .bulk(text)])
      }
      #expect(count < 500)
      #expect(try eventually { try publisher.call("PUBSUB", "NUMSUB", "a") == ["a", 1] })
    }

    @Test func `subscriptions and watched keys have limits`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      let names = (0..<300).map { "\($0)" + String(repeating: "c", count: 4_000) }
      for command in ["SUBSCRIBE", "PSUBSCRIBE"] {
        try client.send([command] + names)
        #expect(try client.reply() == .error("ERR a client has at most 1048576 bytes of subscriptions"))
      }
      #expect(try client.call("SET", "a", "1") == .ok)
      let keys = (0..<20_000).map { "key \($0)" }
      try client.send(["WATCH"] + keys)
      #expect(try client.reply() == .error("ERR a client watches at most 1048576 bytes of keys"))
      #expect(try client.call("UNWATCH") == .ok)
      #expect(try client.call("WATCH", "a") == .ok)
    }

    @Test(arguments: ["memory", "log"])
    func `subscribers receive the changes of every client`(_ engine: String) throws {
      let server = try TestServer(
        stores: engine == "memory" ? ["test"] : [], logs: engine == "log" ? ["test"] : [], speaking: .resp,
        alsoNative: true)
      let (subscriber, client) = (try TestClient(server.address), try TestClient(server.address))
      #expect(try client.call("SET", "before", "1") == .ok)
      #expect(try client.call("CONFIG", "SET", "notify-keyspace-events", "KEA") == .ok)
      #expect(
        try client.call("CONFIG", "GET", "notify-keyspace-events") == ["notify-keyspace-events", "AKE"])
      #expect(
        try client.call("CONFIG", "SET", "notify-keyspace-events", "Q")
          == .error(
            "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class "
              + "character."))
      #expect(try subscriber.call("PSUBSCRIBE", "__key*__:*") == ["psubscribe", "__key*__:*", 1])
      func expect(_ event: String, _ key: String) throws {
        #expect(
          try subscriber.replies(2) == [
            ["pmessage", "__key*__:*", .bulk("__keyspace@0__:\(key)"), .bulk(event)],
            ["pmessage", "__key*__:*", .bulk("__keyevent@0__:\(event)"), .bulk(key)],
          ])
      }
      #expect(try client.call("SET", "a", "1", "PX", "50") == .ok)
      try expect("set", "a")
      try expect("expire", "a")
      try expect("expired", "a")
      let native = try TestClient(server.server.addresses[1])
      try native.handshake(credit: 1 << 20)
      _ = try native.call(Request.open("test", id: 2))
      _ = try native.call(Request.put("b", [2], id: 3))
      try expect("set", "b")
      #expect(try client.call("DEL", "b", "none") == 1)
      try expect("del", "b")
      #expect(try client.call("CONFIG", "SET", "notify-keyspace-events", "Ex") == .ok)
      #expect(try client.call("SET", "c", "1", "PX", "20") == .ok)
      #expect(try subscriber.reply() == ["pmessage", "__key*__:*", "__keyevent@0__:expired", "c"])
      #expect(try client.call("CONFIG", "SET", "notify-keyspace-events", "") == .ok)
      #expect(try client.call("SET", "d", "1", "PX", "20") == .ok)
      #expect(subscriber.isSilent(for: 0.1))
      #expect(try client.call("CONFIG", "SET", "notify-keyspace-events", "K$") == .ok)
      #expect(try client.call("SET", "e", "1") == .ok)
      #expect(try subscriber.reply() == ["pmessage", "__key*__:*", "__keyspace@0__:e", "set"])
    }

    /// Commands on an entry without or with an expiry, and the events that they publish.
    private static let eventsOfCommands: [(expires: Bool, command: String, events: [String])] = [
      (false, "SET k 2", ["set"]), (true, "SET k 2", ["set"]), (true, "SET k 2 KEEPTTL", ["set"]),
      (false, "SET k 2 EX 50", ["set", "expire"]), (true, "SETEX k 50 2", ["set", "expire"]),
      (false, "EXPIRE k 50", ["expire"]), (true, "PEXPIREAT k 99999999999999", ["expire"]),
      (true, "EXPIRE k 50 NX", []), (false, "PERSIST k", []), (true, "PERSIST k", ["persist"]),
      (false, "GETEX k", []), (false, "GETEX k EX 50", ["expire"]), (true, "GETEX k PERSIST", ["persist"]),
      (false, "INCR k", ["set"]), (true, "INCR k", ["set"]), (true, "APPEND k 1", ["set"]),
      (true, "SETRANGE k 1 x", ["set"]), (true, "INCRBYFLOAT k 1", ["set"]), (true, "EXPIRE k -1", ["del"]),
      (true, "GETDEL k", ["del"]), (true, "MSET k 1", ["set"]), (true, "RENAME k l", ["set", "expire", "del"]),
    ]

    @Test(arguments: eventsOfCommands)
    func `a change of an expiry is an event of its own`(_ expires: Bool, _ command: String, _ events: [String]) throws {
      let server = try TestServer(keyspaceEvents: try #require(RESPEventClasses("EA")), speaking: .resp)
      let (subscriber, client) = (try TestClient(server.address), try TestClient(server.address))
      try client.send(expires ? ["SET", "k", "1", "EX", "100"] : ["SET", "k", "1"])
      #expect(try client.reply() == .ok)
      #expect(try subscriber.call("PSUBSCRIBE", "__keyevent*") == ["psubscribe", "__keyevent*", 1])
      // Events of before may still come.
      #expect(try client.call("SET", "begin", "1") == .ok)
      while try subscriber.reply().elements.last != "begin" {}
      try client.send(command.split(separator: " ").map(String.init))
      #expect(try !client.reply().isError)
      #expect(try client.call("SET", "end", "1") == .ok)
      var published: [String] = []
      while true {
        let message = try subscriber.reply().elements
        if message.last == "end" { break }
        published.append(String(message[2].text.dropFirst("__keyevent@0__:".count)))
      }
      #expect(published == events, "\(command)")
    }

    @Test func `a watch says whether only the expiry has changed`() throws {
      let server = try TestServer(speaking: .resp, alsoNative: true)
      let client = try TestClient(server.address)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake(credit: 1 << 20)
      _ = try native.call(Request.open("test", id: 2))
      #expect(try native.call(Request.watch(id: 3)).isDone)
      for words in [["SET", "a", "1", "EX", "50"], ["EXPIRE", "a", "90"], ["INCR", "a"], ["PERSIST", "a"]] {
        try client.send(words)
        #expect(try !client.reply().isError)
      }
      var seen: [TestChange] = []
      while seen.count < 4 { seen += try native.receive().changes }
      #expect(seen.map(\.changesOnlyExpiry) == [false, true, false, true])
      #expect(seen.map { String(decoding: $0.value, as: UTF8.self) } == ["1", "1", "2", "2"])
      #expect(seen.map { $0.expiry == 0 } == [false, false, false, true])
    }

    @Test func `a watch is not told of an expiry`() throws {
      let server = try TestServer(speaking: .resp, alsoNative: true)
      let client = try TestClient(server.address)
      #expect(try client.call("CONFIG", "SET", "notify-keyspace-events", "Ex") == .ok)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake(credit: 1 << 20)
      _ = try native.call(Request.open("test", id: 2))
      #expect(try native.call(Request.watch(id: 3)).isDone)
      #expect(try client.call("SET", "a", "1", "PX", "20") == .ok)
      #expect(try eventually { try client.call("DBSIZE") == 0 })
      #expect(try client.call("SET", "b", "1") == .ok)
      var seen: [TestChange] = []
      while seen.count < 2 { seen += try native.receive().changes }
      #expect(seen.map(\.key) == ["a", "b"])
    }

    @Test func `a server that has stopped keeps no store because of its events`() throws {
      weak var kept: Store?
      do {
        let store = Store(name: try StoreName("test"), engine: .memory)
        kept = store
        let server = try TestServer(
          stores: [], serving: [store], keyspaceEvents: try #require(RESPEventClasses("KEA")), speaking: .resp)
        let client = try TestClient(server.address)
        _ = try client.call("HELLO", "3")
        #expect(try client.call("SUBSCRIBE", "__keyevent@0__:set") == .push(["subscribe", "__keyevent@0__:set", 1]))
        #expect(try client.call("SET", "a", "1") == .ok)
        #expect(try client.reply() == .push(["message", "__keyevent@0__:set", "a"]))
        #expect(server.stop() != nil)
      }
      #expect(eventually { kept == nil })
    }

    @Test func `a client learns nothing of a store that it may not read`() throws {
      let server = try TestServer(
        stores: ["open", "closed"], tcp: true,
        rules: [AccessRule(.tcp, .write, store: try StoreName("open")), AccessRule(.unix, .admin)],
        databases: [
          try #require(RESPDatabase(0, try StoreName("open"))), try #require(RESPDatabase(1, try StoreName("closed"))),
        ],
        keyspaceEvents: try #require(RESPEventClasses("KEA")), speaking: .resp, alsoNative: true)
      let (subscriber, client) = (try TestClient(server.address), try TestClient(server.address))
      #expect(try subscriber.call("PSUBSCRIBE", "__key*") == ["psubscribe", "__key*", 1])
      guard case .error(let text) = try client.call("CONFIG", "SET", "notify-keyspace-events", "KEA") else {
        Issue.record("this client may not administer")
        return
      }
      #expect(text.hasPrefix("NOPERM "))
      let native = try TestClient(server.server.addresses[1])
      try native.handshake(credit: 1 << 20)
      #expect(try native.call(Request.open("closed", id: 2)).isDone)
      #expect(try native.call(Request.put("secret", [1], id: 3)).isDone)
      #expect(client.isSilent(for: 0.05))
      #expect(try client.call("SET", "public", "1") == .ok)
      #expect(try subscriber.reply() == ["pmessage", "__key*", "__keyspace@0__:public", "set"])
    }
  }

  @Suite struct RESPEventClassTests {
    @Test(
      arguments: [
        ("", ""), ("KEA", "AKE"), ("Ex", "xE"), ("Kg$lshzxetd", "AK"), ("AKEm", "AKEm"), ("KEn", "nKE"), ("$gK", "g$K"),
      ])
    func `classes are shown as Redis shows them`(_ text: String, _ shown: String) throws {
      #expect(try #require(RESPEventClasses(text)).description == shown)
    }

    @Test(arguments: ["q", "K E", "kea"])
    func `other letters are refused`(_ text: String) { #expect(RESPEventClasses(text) == nil) }
  }
}
