import Glibc
import Platform
import Storage
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Commands that the comparison with Redis can't check: those that its version doesn't have, that depend on the time or on
  /// the number of keys, or that others of Larder's protocols see.
  @Suite struct RESPCommandTests {
    private static let wrongType = RESPValue.error(
      "WRONGTYPE Operation against a key holding the wrong kind of value")

    @Test func `a value is set or deleted if it is equal to another`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "a", "1", "IFEQ", "0") == .null)
      #expect(try client.call("SET", "a", "1", "IFNE", "0") == .ok)
      #expect(try client.call("SET", "a", "2", "IFEQ", "1", "GET") == "1")
      #expect(try client.call("SET", "a", "3", "IFEQ", "1", "GET") == "2")
      #expect(try client.call("SET", "a", "3", "IFNE", "2") == .null)
      #expect(try client.call("SET", "a", "3", "IFEQ", "2", "NX") == .error("ERR syntax error"))
      #expect(try client.call("DELIFEQ", "a", "1") == 0)
      #expect(try client.call("DELIFEQ", "a", "2") == 1)
      #expect(try client.call("DELIFEQ", "a", "2") == 0)
      #expect(try client.call("SET", "a", "1") == .ok)
      #expect(try client.call("DELEX", "a", "IFNE", "1") == 0)
      #expect(try client.call("DELEX", "a", "IFEQ", "1") == 1)
      #expect(try client.call("DELEX", "a") == 0)
      #expect(try client.call("DELEX", "a", "IFDEQ", "x") == .error("ERR Invalid condition. Use IFEQ or IFNE"))
    }

    @Test func `a time that was set is returned exactly`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "a", "1", "PXAT", "4102444800123") == .ok)
      #expect(try client.call("PEXPIRETIME", "a") == 4_102_444_800_123)
      #expect(try client.call("EXPIRETIME", "a") == 4_102_444_800)
      #expect(try client.call("GETEX", "a", "EXAT", "4102444801") == "1")
      #expect(try client.call("PEXPIRETIME", "a") == 4_102_444_801_000)
      #expect(
        try client.call("PEXPIRE", "a", "9007199254740993") == .error("ERR invalid expire time in 'pexpire' command"))
    }

    @Test func `an entry that has expired is absent, and a transaction that watches it fails`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "a", "1", "PX", "40") == .ok)
      #expect(try client.call("WATCH", "a") == .ok)
      #expect(try client.call("DBSIZE") == 1)
      #expect(try eventually { try client.call("EXISTS", "a") == 0 })
      #expect(try client.call("DBSIZE") == 0)
      #expect(try client.call("TTL", "a") == -2)
      #expect(try client.call("MULTI") == .ok)
      #expect(try client.call("SET", "b", "1") == .simple("QUEUED"))
      #expect(try client.call("EXEC") == .null)
      #expect(try client.call("EXISTS", "b") == 0)
    }

    @Test func `a scan finds what is there all the time, while entries come and go`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      let kept = Set((0..<2_000).map { "kept \($0)" })
      for key in kept { #expect(try client.call("SET", key, "1") == .ok) }
      for round in 0..<5 {
        var found: Set<String> = []
        var (cursor, calls) = ("0", 0)
        repeat {
          let reply = try client.call("SCAN", cursor, "COUNT", "50").elements
          cursor = reply[0].text
          found.formUnion(reply[1].elements.map(\.text))
          #expect(try #require(Int(cursor)) < 1 << 53)
          calls += 1
          for number in 0..<40 {
            let name = round % 2 == 0 ? "SET" : "GETDEL"
            try client.send(
              name == "SET" ? ["SET", "more \(calls) \(number)", "1"] : ["GETDEL", "more \(calls) \(number)"])
          }
          _ = try client.replies(40)
        } while cursor != "0"
        #expect(found.isSuperset(of: kept), "round \(round)")
        #expect(calls > 20)
      }
    }

    @Test func `the cursor of another server is invalid, and one of before a flush goes on`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      for number in 0..<200 { #expect(try client.call("SET", "\(number)", "1") == .ok) }
      let cursor = try client.call("SCAN", "0").elements[0].text
      let other = try TestServer(speaking: .resp)
      #expect(try TestClient(other.address).call("SCAN", cursor) == .error("ERR invalid cursor"))
      #expect(try client.call("SCAN", "x") == .error("ERR invalid cursor"))
      #expect(try client.call("FLUSHDB") == .ok)
      #expect(try client.call("SCAN", cursor) == ["0", []])
    }

    @Test func `a scan for a prefix with few keys needs one call`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      for number in 0..<3_000 { try client.send(["SET", number % 100 == 0 ? "few:\(number)" : "many:\(number)", "1"]) }
      _ = try client.replies(3_000)
      let reply = try client.call("SCAN", "0", "MATCH", "few:1*").elements
      #expect(reply[0] == "0" && reply[1].elements.count == 11)
      #expect(try client.call("SCAN", "0", "MATCH", "few:*", "TYPE", "list") == ["0", []])
      #expect(try client.call("SCAN", "0", "MATCH", "few:*", "TYPE", "zset") == ["0", []])
      #expect(try client.call("SCAN", "0", "MATCH", "many:*").elements[0] != "0")
    }

    @Test func `KEYS finds all keys, also if there are many`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      for number in 0..<10_000 { try client.send(["SET", "key \(number)", "1"]) }
      _ = try client.replies(10_000)
      #expect(try client.call("KEYS", "*").elements.count == 10_000)
      #expect(try client.call("KEYS", "key *7").elements.count == 1_000)
      #expect(try client.call("KEYS", "key 77").elements == ["key 77"])
      #expect(try client.call("KEYS", "x*") == [])
      #expect(try client.call("MULTI") == .ok)
      #expect(try client.call("KEYS", "key 9*") == .simple("QUEUED"))
      #expect(try client.call("EXEC").elements[0].elements.count == 1_111)
      #expect(try client.call("RANDOMKEY").text.hasPrefix("key "))
    }

    @Test func `both protocols see the same entries`() throws {
      let server = try TestServer(speaking: .resp, alsoNative: true)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake(credit: 1 << 20)
      #expect(try native.call(Request.make(.storeOpen, store: 0, id: 2, Array("test".utf8))).outcome == .done)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "a", "1", "EX", "100") == .ok)
      let entry = try #require(native.call(Request.get("a", id: 3)).entries.first)
      #expect(entry.value == Array("1".utf8) && entry.revision == 1)
      #expect((99_000...100_000).contains(entry.expiry))
      let list = TestOperation.putList("list", ["x", "y", "z"].map { Array($0.utf8) })
      #expect(try native.call(Request.apply([list], id: 4)).outcome == .done)
      #expect(try client.call("TYPE", "list") == .simple("list"))
      #expect(try client.call("LRANGE", "list", "0", "-1") == ["x", "y", "z"])
      #expect(try client.call("LRANGE", "list", "-2", "5") == ["y", "z"])
      #expect(try client.call("LLEN", "list") == 3)
      #expect(try client.call("LINDEX", "list", "-1") == "z")
      #expect(try client.call("LINDEX", "list", "3") == .null)
      for request in [
        ["GET", "list"], ["INCR", "list"], ["APPEND", "list", "x"], ["STRLEN", "list"], ["GETDEL", "list"],
      ] {
        try client.send(request)
        #expect(try client.reply() == Self.wrongType, "\(request)")
      }
      #expect(try client.call("LLEN", "a") == Self.wrongType)
      #expect(try client.call("MGET", "a", "list") == ["1", .null])
      #expect(try client.call("COPY", "list", "copy") == 1)
      #expect(try client.call("EXPIRE", "copy", "100") == 1)
      #expect(try client.call("LLEN", "copy") == 3)
    }

    @Test(arguments: [["SET", "a", "1"], ["INCR", "a"], ["FLUSHALL"], ["FLUSHDB"], ["GETDEL", "old"]])
    func `a watch gets what RESP changes, at once`(_ command: [String]) throws {
      let server = try TestServer(speaking: .resp, alsoNative: true)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "old", "0") == .ok)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake(credit: 1 << 20)
      #expect(try native.call(Request.make(.storeOpen, store: 0, id: 2, Array("test".utf8))).outcome == .done)
      #expect(try native.call(Request.watch(id: 9)).changes.isEmpty)
      try client.send(command)
      _ = try client.reply()
      #expect(try native.receive(within: 5).changes.map(\.revision) == [2])
    }

    @Test func `the commands of a transaction are one commit`() throws {
      let server = try TestServer(speaking: .resp, alsoNative: true)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake(credit: 1 << 20)
      #expect(try native.call(Request.make(.storeOpen, store: 0, id: 2, Array("test".utf8))).outcome == .done)
      let client = try TestClient(server.address)
      for request in [
        ["MULTI"], ["SET", "a", "x"], ["INCR", "a"], ["SET", "b", "2"], ["GET", "b"], ["DEL", "none"],
      ] {
        try client.send(request)
      }
      #expect(try client.replies(6).last == .simple("QUEUED"))
      let notANumber = RESPValue.error("ERR value is not an integer or out of range")
      #expect(try client.call("EXEC") == [.ok, notANumber, .ok, "2", 0])
      #expect(try native.call(Request.get("a", id: 3)).entries[0].revision == 1)
      #expect(try native.call(Request.get("b", id: 4)).entries[0].revision == 1)
      #expect(try client.call("SET", "c", "3") == .ok)
      #expect(try native.call(Request.get("c", id: 5)).entries[0].revision == 2)
    }

    @Test func `transactions of all clients have limited memory, and a small one goes on`() throws {
      let server = try TestServer(speaking: .resp, alsoNative: true) {
        $0.maxFrameBytes = 1 << 17
        $0.maxTotalInputBytes = 1 << 20
      }
      let value = String(repeating: "v", count: 30_000)
      let clients = try (0..<40).map { _ in try TestClient(server.address) }
      for client in clients {
        #expect(try client.call("MULTI") == .ok)
        for number in 0..<3 { #expect(try client.call("SET", "\(number)", value) == .simple("QUEUED")) }
      }
      // New requests come before those that wait.
      var disconnected = 0
      for client in clients where !client.isSilent(for: 0.01) {
        #expect(try client.isClosed())
        disconnected += 1
      }
      #expect(disconnected >= 20)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake()
      #expect(try eventually { try #require(try native.figures()["input_bytes"]) <= 1 << 20 })
      let small = try TestClient(server.address)
      #expect(try small.call("MULTI") == .ok)
      #expect(try small.call("SET", "small", "1") == .simple("QUEUED"))
      #expect(try small.call("EXEC") == [.ok])
      for client in clients { client.endSending() }
      #expect(try eventually { try native.figures()["input_bytes"] == 0 })
    }

    @Test func `keys that Larder can't have are refused with what to do`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      try client.send(Array("*3\r\n$3\r\nSET\r\n$4\r\n".utf8) + [0xAC, 0xED, 0, 5] + Array("\r\n$1\r\n1\r\n".utf8))
      guard case .error(let text) = try client.reply() else {
        Issue.record("the key isn't UTF-8")
        return
      }
      #expect(text.contains("StringRedisTemplate"))
      #expect(try client.call("SET", "", "1") == .error("ERR a key must not be empty"))
      #expect(try client.call("GET", "") == .null)
      let long = String(repeating: "k", count: 4_097)
      #expect(try client.call("SET", long, "1") == .error("ERR a key has at most 4096 bytes"))
      #expect(try client.call("GET", long) == .null)
      #expect(try client.call("MSET", "a", "1", "", "2") == .error("ERR a key must not be empty"))
      #expect(try client.call("EXISTS", "a", "", long) == 0)
    }

    @Test(arguments: ["memory", "log", "directory", "replicated"])
    func `an error in a transaction leaves the large values before it as they are`(_ engine: String) throws {
      let server = try TestServer(
        stores: engine == "memory" ? ["test"] : [], logs: engine == "log" ? ["test"] : [],
        directories: engine == "directory" ? ["test"] : [], replicated: engine == "replicated" ? ["test"] : [],
        speaking: .resp)
      let client = try TestClient(server.address)
      let value = String(repeating: "0123456789", count: 10_000)
      #expect(try client.call("MSET", "big", value, "text", "x") == .ok)
      let notANumber = RESPValue.error("ERR value is not an integer or out of range")
      // In a durable store, the value is in a file after a while.
      for _ in 0..<20 {
        for request in [["MULTI"], ["GET", "big"], ["INCR", "text"], ["MGET", "big", "text"], ["EXEC"]] {
          try client.send(request)
        }
        _ = try client.replies(4)
        #expect(try client.reply() == [.bulk(value), notANumber, [.bulk(value), "x"]])
        usleep(2_000)
      }
    }

    @Test(arguments: ["memory", "log", "directory", "replicated"])
    func `large values are stored, changed and returned by every engine`(_ engine: String) throws {
      let server = try TestServer(
        stores: engine == "memory" ? ["test"] : [], logs: engine == "log" ? ["test"] : [],
        directories: engine == "directory" ? ["test"] : [], replicated: engine == "replicated" ? ["test"] : [],
        speaking: .resp)
      let client = try TestClient(server.address)
      let value = String(repeating: "0123456789", count: 100_000)
      #expect(try client.call("SET", "big", value) == .ok)
      #expect(try client.call("STRLEN", "big") == 1_000_000)
      #expect(try client.call("GET", "big") == .bulk(value))
      #expect(try client.call("GETRANGE", "big", "999995", "-1") == "56789")
      #expect(try client.call("MGET", "big", "none", "big") == [.bulk(value), .null, .bulk(value)])
      #expect(try client.call("APPEND", "big", "x") == 1_000_001)
      #expect(try client.call("INCR", "big") == .error("ERR value is not an integer or out of range"))
      #expect(try client.call("EXPIRE", "big", "100") == 1)
      #expect(try client.call("RENAME", "big", "bigger") == .ok)
      #expect(try client.call("SET", "bigger", "1", "IFEQ", value) == .null)
      #expect(try client.call("GETSET", "bigger", "small") == .bulk(value + "x"))
      #expect(try client.call("GETDEL", "bigger") == "small")
      let limit = ServerLimits().maxValueBytes
      #expect(try client.call("SETRANGE", "a", "\(limit - 1)", "x") == .integer(limit))
      let tooLong = RESPValue.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
      #expect(try client.call("APPEND", "a", "x") == tooLong)
      #expect(try client.call("SETRANGE", "a", "9223372036854775807", "x") == tooLong)
    }
  }

  /// Scripts that Larder recognizes.
  @Suite struct RESPScriptTests {
    private static let release =
      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"

    @Test func `hashes are those of the standard`() {
      #expect(SHA1.hex(of: []) == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
      #expect(SHA1.hex(of: Array("abc".utf8)) == "a9993e364706816aba3e25717850c26c9cd0d89d")
      let long = Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)
      #expect(SHA1.hex(of: long) == "84983e441c3bd26ebaae4aa1f95129e5e54670f1")
      #expect(SHA1.hex(of: [UInt8](repeating: 0x61, count: 1_000_000)) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f")
    }

    @Test func `a script is recognized whatever its spaces and quotes, and no other is`() {
      for text in [
        Self.release, Self.release.replacing("'", with: "\""), Self.release.replacing(" ", with: "\n    "),
        Self.release.replacing(", ", with: ","),
      ] {
        #expect(RESPScript(Array(text.utf8)) == .deleteIfEqual, "\(text)")
      }
      for text in [
        Self.release + " ", Self.release.replacing("0", with: "1"), "return 1", "", Self.release.uppercased(),
      ] {
        #expect((RESPScript(Array(text.utf8)) != nil) == (text == Self.release + " "), "\(text)")
      }
    }
  }

  @Suite struct RESPLockTests {
    private static let release =
      "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
    private static let extend =
      "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end"

    @Test func `a lock is extended and released by its owner only`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "lock", "owner", "NX", "PX", "1000") == .ok)
      #expect(try client.call("EVAL", Self.extend, "1", "lock", "other", "90000") == 0)
      #expect(try client.call("EVAL", Self.extend, "1", "lock", "owner", "90000") == 1)
      guard case .integer(let lifetime) = try client.call("PTTL", "lock") else {
        Issue.record("the lock is gone")
        return
      }
      #expect((80_000...90_000).contains(lifetime))
      let hash = SHA1.hex(of: Array(Self.release.utf8))
      #expect(
        try client.call("EVALSHA", hash, "1", "lock", "owner")
          == .error("NOSCRIPT No matching script. Please use EVAL."))
      #expect(try client.call("SCRIPT", "EXISTS", hash) == [0])
      #expect(try client.call("SCRIPT", "LOAD", Self.release) == .bulk(hash))
      #expect(try client.call("SCRIPT", "EXISTS", hash, "x") == [1, 0])
      #expect(try client.call("EVALSHA", hash, "1", "lock", "other") == 0)
      #expect(try client.call("EVALSHA", hash.uppercased(), "1", "lock", "owner") == 1)
      #expect(try client.call("EXISTS", "lock") == 0)
      guard case .error(let text) = try client.call("EVAL", "return 1", "0") else {
        Issue.record("there is no interpreter")
        return
      }
      #expect(text.hasPrefix("ERR Larder runs only"))
      #expect(
        try client.call("EVAL", Self.release, "2", "lock")
          == .error("ERR Number of keys can't be greater than number of args"))
      #expect(
        try client.call("EVAL", Self.release, "1", "lock") == .error("ERR this script takes a key and 1 more words"))
    }

    @Test func `further keys and words of a script are ignored, as by the script itself`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "lock", "owner") == .ok)
      #expect(try client.call("EVAL", Self.extend, "1", "lock", "owner", "90000", "more") == 1)
      #expect(try client.call("EVAL", Self.extend, "3", "lock", "other", "another", "owner", "80000") == 1)
      #expect(try client.call("EVAL", Self.release, "2", "lock", "other", "lock", "owner") == 0)
      #expect(try client.call("EVAL", Self.release, "2", "lock", "other", "owner", "more") == 1)
      #expect(try client.call("EVAL", Self.release, "0", "owner").isError)
    }
  }

  /// Patterns of keys, compared with one of a regular expression's kind that tries everything.
  @Suite struct GlobPatternTests {
    @Test(arguments: [
      ("*", "", true), ("*", "a", true), ("a*", "abc", true), ("a*c", "abc", true), ("a*c", "abd", false),
      ("a?c", "abc", true), ("a?c", "ac", false), ("[a-c]x", "bx", true), ("[^a-c]x", "bx", false),
      ("[c-a]x", "bx", true), ("\\*", "*", true), ("\\*", "a", false), ("a\\", "a\\", true), ("[", "[", false),
      ("[a", "a", true), ("*a*b*", "xxaxxbxx", true), ("*a*b*", "xxbxxaxx", false), ("", "", true), ("", "a", false),
      ("**", "a", true), ("a**", "a", true), ("[\\]]", "]", true), ("h[ae]llo", "hello", true), ("?*", "", false),
    ])
    func `a pattern matches what it describes`(_ pattern: String, _ key: String, _ matches: Bool) throws {
      let glob = unsafe try GlobPattern(Array(pattern.utf8).span.bytes)
      #expect(glob.matches(key) == matches, "\(pattern) \(key)")
    }

    @Test func `random patterns match as Redis describes them, also long ones`() throws {
      let seed = UInt64.random(in: 0 ... .max)
      var random = SeededGenerator(seed: seed)
      let pieces = ["a", "b", "*", "?", "[ab]", "[^a]", "[b-a]", "\\*", "[", "]", "[^", "\\", "-", "c", "aa", "ba*"]
      for round in 0..<4_000 {
        let count = round % 20 == 0 ? 200 : 8
        let pattern = (0..<Int.random(in: 0...count, using: &random)).map { _ in pieces.randomElement(using: &random)! }
          .joined()
        let text = (0..<Int.random(in: 0...count, using: &random)).map { _ in
          "aaab*c-".randomElement(using: &random)!
        }
        let (bytes, key) = (Array(pattern.utf8), Array(String(text).utf8))
        let glob = unsafe try GlobPattern(bytes.span.bytes)
        let matches = unsafe key.withUnsafeBytes { unsafe glob.matches($0) }
        #expect(matches == GlobOracle.matches(bytes[...], key[...]), "\(pattern) \(String(text)), seed \(seed)")
        #expect(!matches || key.starts(with: glob.prefix), "\(pattern) \(String(text)), seed \(seed)")
      }
    }

    @Test func `bytes of any value are told apart`() throws {
      let all = (0...255 as ClosedRange<UInt8>).flatMap { [UInt8(ascii: "\\"), $0] }
      let text = (0...255 as ClosedRange<UInt8>).map { $0 }
      let glob = unsafe try GlobPattern(all.span.bytes)
      let anyOf = unsafe try GlobPattern((Array("*[".utf8) + all + Array("]".utf8)).span.bytes)
      let noneOf = unsafe try GlobPattern((Array("*[^".utf8) + all + Array("]".utf8)).span.bytes)
      unsafe text.withUnsafeBytes { bytes in
        #expect(unsafe glob.matches(bytes) && anyOf.matches(bytes) && !noneOf.matches(bytes))
      }
      for index in text.indices {
        var other = text
        other[index] &+= 1
        unsafe other.withUnsafeBytes { bytes in
          #expect(unsafe !glob.matches(bytes) && anyOf.matches(bytes) && !noneOf.matches(bytes))
        }
      }
    }

    @Test func `a pattern that is too long is refused by all commands`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      let (longest, tooLong) = (String(repeating: "*", count: 4_096), String(repeating: "*", count: 4_097))
      let error = RESPValue.error("ERR a pattern has at most 4096 bytes")
      #expect(try client.call("SET", "a", "1") == .ok)
      for words in [["KEYS"], ["SCAN", "0", "MATCH"], ["CONFIG", "GET"], ["PUBSUB", "CHANNELS"]] {
        try client.send(words + [tooLong])
        #expect(try client.reply() == error, "\(words)")
        try client.send(words + [longest])
        #expect(try !client.reply().isError, "\(words)")
      }
      let channelError = RESPValue.error("ERR a channel has at most 4096 bytes")
      for words in [["PSUBSCRIBE"], ["SUBSCRIBE"]] {
        try client.send(words + [tooLong])
        #expect(try client.reply() == channelError, "\(words)")
      }
      #expect(try client.call("PUBLISH", tooLong, "x") == channelError)
      #expect(try client.call("PUBLISH", longest, "x") == 0)
    }
  }
}

/// Patterns as Redis matches them, by trying everything.
private enum GlobOracle {
  static func matches(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
    // The texts that the pattern read so far matches, by what is left of them.
    var ends: Set<Int> = [text.startIndex]
    var rest = pattern
    while let first = rest.popFirst() {
      if first == UInt8(ascii: "*") {
        ends = ends.min().map { Set($0...text.endIndex) } ?? []
        continue
      }
      let accepts = element(first, &rest)
      ends = Set(ends.compactMap { end in end < text.endIndex && accepts(text[end]) ? end + 1 : nil })
    }
    return ends.contains(text.endIndex)
  }

  private static func element(_ first: UInt8, _ rest: inout ArraySlice<UInt8>) -> (UInt8) -> Bool {
    switch first {
    case UInt8(ascii: "?"): return { _ in true }
    case UInt8(ascii: "\\"):
      let literal = rest.popFirst() ?? first
      return { $0 == literal }
    case UInt8(ascii: "["):
      let isNegated = rest.first == UInt8(ascii: "^")
      if isNegated { rest.removeFirst() }
      var ranges: [ClosedRange<UInt8>] = []
      while let byte = rest.popFirst(), byte != UInt8(ascii: "]") {
        let start = rest.startIndex
        if byte == UInt8(ascii: "\\"), let literal = rest.popFirst() {
          ranges.append(literal...literal)
        } else if rest.count >= 2, rest[start] == UInt8(ascii: "-") {
          ranges.append(min(byte, rest[start + 1])...max(byte, rest[start + 1]))
          rest.removeFirst(2)
        } else {
          ranges.append(byte...byte)
        }
      }
      return { byte in ranges.contains { $0.contains(byte) } != isNegated }
    default: return { $0 == first }
    }
  }
}
