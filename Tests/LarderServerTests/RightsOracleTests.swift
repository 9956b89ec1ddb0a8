import Storage
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// What the matrix of rights can't see: a reply that depends on entries that the client may not read.
  struct RightsOracleTests {
    /// A store that one client may use as a whole, and another one only as far as keys begin with `mine:`.
    private struct Side {
      let server: TestServer
      let admin: TestClient
      let client: TestClient

      init(log: Bool) throws {
        let name = try StoreName("test")
        server = try TestServer(
          stores: log ? [] : ["test"], tcp: true, logs: log ? ["test"] : [],
          rules: [AccessRule(.unix, .admin), AccessRule(.tcp, .write, store: name, keyPrefix: "mine:")],
          alsoNative: true)
        admin = try TestClient(server.server.addresses[1])
        _ = try admin.handshake()
        #expect(try admin.call(Request.open("test", id: 2)).isDone)
        client = try server.connect(credit: 1 << 30)
      }

      /// Returns all frames of the reply to a request.
      func frames(_ request: [UInt8]) throws -> [Reply] {
        var frames = [try client.call(request)]
        while frames[frames.count - 1].more { frames.append(try client.receive()) }
        return frames
      }
    }

    private static let names = ["a", "b", "c", "c:1", "c:2", "d"]

    private static func key(_ random: inout some RandomNumberGenerator) -> String {
      let prefix = ["mine:", "mine:", "mine:", "theirs:", ""].randomElement(using: &random)!
      return prefix + names.randomElement(using: &random)!
    }

    private static func prefix(_ random: inout some RandomNumberGenerator) -> String {
      ["mine:", "mine:c", "mine:c:", "mine", "m", "", "theirs:", "n"].randomElement(using: &random)!
    }

    private static func value(_ random: inout some RandomNumberGenerator) -> [UInt8] {
      Array("{\"n\": \(Int.random(in: 0..<9, using: &random))}".utf8)
    }

    private static func operations(_ random: inout some RandomNumberGenerator) -> [TestOperation] {
      (0..<Int.random(in: 1...3, using: &random)).map { _ in
        let key = key(&random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .put(key, value(&random))
        case 1: return .put(key, value(&random), ifAbsent: true)
        case 2: return .delete(key)
        case 3: return .update(key, #"{"$inc": {"n": 1}}"#, creates: Bool.random(using: &random))
        case 4: return .check(key, revision: UInt64.random(in: 1..<50, using: &random))
        default: return .checkAbsent(key)
        }
      }
    }

    private static func request(_ random: inout some RandomNumberGenerator) -> [UInt8] {
      let (first, second) = (key(&random), key(&random))
      switch Int.random(in: 0..<20, using: &random) {
      case 0, 1: return Request.get(first, id: 9)
      case 2: return Request.keys(.getMany, [first, second], id: 9)
      case 3: return Request.put(first, value(&random), id: 9)
      case 4: return Request.put(first, value(&random), id: 9, ifAbsent: true)
      case 5: return Request.put(first, value(&random), id: 9, ifRevision: UInt64.random(in: 1..<50, using: &random))
      case 6: return Request.putMany([(first, value(&random)), (second, value(&random))], id: 9)
      case 7: return Request.delete(first, id: 9)
      case 8: return Request.keys(.deleteMany, [first, second], id: 9)
      case 9: return Request.make(.count, id: 9, Array(prefix(&random).utf8))
      case 10, 11:
        return Request.page(
          id: 9, offset: UInt64.random(in: 0..<4, using: &random), limit: UInt32.random(in: 0..<5, using: &random),
          prefix: prefix(&random), after: Bool.random(using: &random) ? first : nil,
          reverse: Bool.random(using: &random),
          keysOnly: Bool.random(using: &random))
      case 12: return Request.all(id: 9, prefix: prefix(&random), after: first, reverse: Bool.random(using: &random))
      case 13, 14: return Request.apply(operations(&random), id: 9)
      case 15: return Request.make(.getRange, id: 9, [UInt8](repeating: 0, count: 16) + first.utf8)
      case 16: return Request.make(.storeList, store: 0, id: 9)
      case 17: return Request.find(id: 9, selector: #"{"n": 1}"#, explain: Bool.random(using: &random))
      case 18:
        return Request.make([.stats, .indexList, .deleteAll].randomElement(using: &random)!, id: 9)
      default:
        return Request.make([.stats, .slowLog].randomElement(using: &random)!, store: 0, id: 9)
      }
    }

    @Test(arguments: [(1, false), (2, false), (3, true), (4, true)])
    func `replies don't depend on entries that the client may not read`(seed: UInt64, log: Bool) throws {
      let sides = [try Side(log: log), try Side(log: log)]
      var random = SeededGenerator(seed: seed)
      var executedCount = 0
      for step in 0..<2_000 {
        if Int.random(in: 0..<3, using: &random) == 0 {
          // As many commits on both sides, to entries that need not be the same.
          for side in sides {
            let key = ["theirs:", "", "n"].randomElement(using: &random)! + Self.names.randomElement(using: &random)!
            #expect(try side.admin.call(Request.put(key, Self.value(&random), id: 8)).isDone)
          }
        }
        let request = Self.request(&random)
        let replies = try sides.map { try $0.frames(request) }
        #expect(replies[0] == replies[1], "step \(step): \(replies)")
        if replies[0][0].code != .notPermitted { executedCount += 1 }
      }
      #expect(executedCount > 500)
    }
  }
}
