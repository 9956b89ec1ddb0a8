import Storage
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Every operation with every kind of right, against a model that is written apart from the code.
  struct RightsMatrixTests {
    /// What an operation needs a right to.
    private enum Need {
      case nothing
      case server(Right)
      case wholeStore(Right)
      case anyPart(Right)
      case keys(Right)
    }

    /// The model. An operation without its row doesn't compile.
    private func need(_ operation: Operation) -> Need {
      switch operation {
      case .hello, .credit, .cancel, .ping, .storeClose, .storeList, .uploadPart, .uploadDiscard, .whoami,
        .consoleLink:
        .nothing
      case .slowLog, .connections, .rulesCheck, .tokenList, .cluster: .server(.admin)
      case .stats: .wholeStore(.read)
      case .storeOpen, .storeOpenStale: .anyPart(.read)
      case .storeCreate, .storeDrop, .storeMove, .indexEnsure, .indexDelete: .wholeStore(.admin)
      case .indexList, .find, .aggregate: .wholeStore(.read)
      case .changeMatching, .deleteAll: .wholeStore(.write)
      case .get, .getRange, .getMany, .count, .page, .all, .watch: .keys(.read)
      case .put, .putMany, .delete, .deleteMany, .apply, .uploadPut: .keys(.write)
      case .uploadBegin: .anyPart(.write)
      }
    }

    /// What a client has a right to.
    private enum Granted: CaseIterable {
      case otherStore, otherPrefix, longerPrefix, readOfPrefix, writeOfPrefix, read, write, admin

      func rule() throws -> AccessRule {
        let test = try StoreName("test")
        return switch self {
        case .otherStore: AccessRule(.tcp, .admin, store: try StoreName("other"))
        case .otherPrefix: AccessRule(.tcp, .write, store: test, keyPrefix: "ours:")
        case .longerPrefix: AccessRule(.tcp, .write, store: test, keyPrefix: "mine:1")
        case .readOfPrefix: AccessRule(.tcp, .read, store: test, keyPrefix: "mine:")
        case .writeOfPrefix: AccessRule(.tcp, .write, store: test, keyPrefix: "mine:")
        case .read: AccessRule(.tcp, .read, store: test)
        case .write: AccessRule(.tcp, .write, store: test)
        case .admin: AccessRule(.tcp, .admin, store: test)
        }
      }

      var toStore: Right {
        switch self {
        case .otherStore, .otherPrefix, .longerPrefix, .readOfPrefix, .writeOfPrefix: .nothing
        case .read: .read
        case .write: .write
        case .admin: .admin
        }
      }

      var toAnyPart: Right {
        switch self {
        case .otherPrefix, .longerPrefix, .writeOfPrefix: .write
        case .readOfPrefix: .read
        default: toStore
        }
      }

      /// The right to all keys that begin with `mine:`.
      var toMine: Right {
        switch self {
        case .readOfPrefix: .read
        case .writeOfPrefix: .write
        default: toStore
        }
      }
    }

    /// Whether keys of a request are all those that begin with `mine:`, or not all do.
    private enum Keys: CaseIterable { case mine, mixed }

    /// Whether a client may send a request.
    private func permits(_ granted: Granted, _ operation: Operation, _ keys: Keys) -> Bool {
      switch need(operation) {
      case .nothing: true
      case .server: false
      case .wholeStore(let right): granted.toStore >= right
      case .anyPart(let right): granted.toAnyPart >= right
      case .keys(let right): (keys == .mine ? granted.toMine : granted.toStore) >= right
      }
    }

    /// Requests for an operation on the store `test`, which has handle 1.
    private func requests(_ operation: Operation, _ keys: Keys) -> [[UInt8]] {
      let isMine = keys == .mine
      let single = isMine ? ["mine:a", "mine:b"] : ["theirs:a", "other", "mine", "minf:", "mine;"]
      let several = isMine ? [["mine:a", "mine:b"]] : [["mine:a", "theirs:a"], ["theirs:a", "mine:a"]]
      let prefixes = isMine ? ["mine:", "mine:a", "mine:a:b"] : ["", "m", "mine", "theirs:", "minf:"]
      switch operation {
      case .get: return single.map { Request.get($0, id: 9) }
      case .getRange: return single.map { Request.make(.getRange, id: 9, [UInt8](repeating: 0, count: 16) + $0.utf8) }
      case .getMany, .deleteMany: return several.map { Request.keys(operation, $0, id: 9) }
      case .put:
        return single.map { Request.put($0, [1], id: 9) } + single.map { Request.put($0, [1], id: 9, ifAbsent: true) }
      case .delete:
        return single.map { Request.delete($0, id: 9) } + single.map { Request.delete($0, id: 9, ifRevision: 7) }
      case .putMany: return several.map { Request.putMany($0.map { ($0, [1]) }, id: 9) }
      case .apply:
        // A failed check would reveal whether there is an entry.
        return several.flatMap { keys in
          [
            Request.apply(keys.map { .put($0, [1]) }, id: 9), Request.apply(keys.map { .delete($0) }, id: 9),
            Request.apply([.put(keys[0], [1]), .update(keys[1], "{}", creates: true)], id: 9),
            Request.apply([.put("mine:a", [1])] + keys.map { .check($0) }, id: 9),
            Request.apply([.put("mine:a", [1])] + keys.map { .checkAbsent($0) }, id: 9),
            Request.apply(
              [.put("mine:a", [1]), .put(keys[0], [1], ifAbsent: true), .put(keys[1], [1], ifRevision: 3)], id: 9),
          ]
        }
      case .uploadPut:
        return single.map { Request.make(.uploadPut, id: 9, [UInt8](repeating: 0, count: 16) + Request.write($0, [])) }
      case .count: return prefixes.map { Request.make(.count, id: 9, Array($0.utf8)) }
      case .page:
        return prefixes.flatMap {
          [
            Request.page(id: 9, limit: 2, prefix: $0),
            Request.page(id: 9, offset: 1, limit: 2, prefix: $0, reverse: true),
            Request.page(id: 9, limit: 2, prefix: $0, after: "mine:a", keysOnly: true),
          ]
        }
      case .all: return prefixes.map { Request.all(id: 9, prefix: $0) }
      case .watch: return prefixes.map { Request.watch(id: 9, prefix: $0) }
      case .find: return [Request.find(id: 9)]
      case .aggregate: return [Request.make(.aggregate, id: 9, [UInt8](repeating: 0, count: 8) + Array("{}".utf8))]
      case .changeMatching: return [Request.make(.changeMatching, id: 9, [3, 0, 0, 0, 0, 0, 0, 0])]
      case .stats, .deleteAll, .storeClose, .indexList, .uploadBegin: return [Request.make(operation, id: 9)]
      case .indexEnsure: return [Request.make(.indexEnsure, id: 9, Array(#"{"fields": ["a"]}"#.utf8))]
      case .indexDelete: return [Request.make(.indexDelete, id: 9, Array("a".utf8))]
      case .storeOpen: return [Request.open("test", id: 9)]
      case .storeCreate: return [Request.create("test", id: 9)]
      case .storeDrop: return [Request.make(.storeDrop, store: 0, id: 9, Array("test".utf8))]
      case .uploadPart: return [Request.make(.uploadPart, store: 0, id: 9, [UInt8](repeating: 0, count: 16))]
      case .uploadDiscard: return [Request.make(.uploadDiscard, store: 0, id: 9, [UInt8](repeating: 0, count: 8))]
      case .connections: return [Request.make(.connections, store: 0, id: 9, [1, 0, 0, 0])]
      case .rulesCheck: return [Request.make(operation, store: 0, id: 9, Array(#"{"operation": "ping"}"#.utf8))]
      case .storeOpenStale:
        return [Request.make(.storeOpenStale, store: 0, id: 9, [0, 1, 0, 0] + Array("test".utf8))]
      case .storeMove:
        return [Request.make(.storeMove, store: 0, id: 9, [4] + Array("testnode".utf8))]
      case .hello, .ping, .slowLog, .storeList, .whoami, .tokenList, .cluster, .consoleLink:
        return [Request.make(operation, store: 0, id: 9)]
      // They have no reply.
      case .credit, .cancel: return []
      }
    }

    private func populated() throws -> TestServer {
      let server = try TestServer(stores: ["test", "other"], tcp: true)
      let client = try server.connect()
      for key in ["mine:a", "theirs:a", "mine", "ours:a"] {
        #expect(try client.call(Request.put(key, [1], id: 3)).isDone)
      }
      return server
    }

    @Test(arguments: Operation.allCases)
    func `an operation is permitted to whom the model permits it, and to nobody else`(operation: Operation) throws {
      for granted in Granted.allCases {
        for keys in Keys.allCases {
          for (number, request) in requests(operation, keys).enumerated() {
            let server = try populated()
            let client = try server.connect()
            try server.server.change(stores: [], limits: ServerLimits(), rules: [granted.rule()])
            let reply = try client.call(request)
            let isPermitted = permits(granted, operation, keys)
            #expect(
              (reply.code != .notPermitted) == isPermitted, "\(operation), \(keys) \(number), \(granted): \(reply)")
            guard !isPermitted else { continue }
            #expect(reply.isError(.notPermitted, id: 9) && reply.message.hasPrefix("a TCP client may not "))
            // It has changed nothing.
            try server.server.change(stores: [], limits: ServerLimits(), rules: [])
            #expect(try client.call(Request.make(.count, id: 10)).number == 4)
            #expect(try client.figures(store: 1)["revision"] == 4)
          }
        }
      }
    }

    /// These are reads, of the keys that they name.
    @Test func `an apply of checks alone is permitted to whom may read the keys`() throws {
      for granted in Granted.allCases {
        for keys in Keys.allCases {
          let names = keys == .mine ? ["mine:a", "mine:b"] : ["mine:a", "theirs:a"]
          let isPermitted = (keys == .mine ? granted.toMine : granted.toStore) >= .read
          for operations in [names.map { TestOperation.check($0) }, names.map { .checkAbsent($0) }] {
            let server = try populated()
            let client = try server.connect()
            try server.server.change(stores: [], limits: ServerLimits(), rules: [granted.rule()])
            let reply = try client.call(Request.apply(operations, id: 9))
            #expect((reply.code != .notPermitted) == isPermitted, "\(keys), \(granted): \(reply)")
          }
        }
      }
    }

    @Test func `a watch ends when its client loses the right to its prefix, and goes on if it keeps that`() throws {
      let server = try populated()
      let test = try StoreName("test")
      func change(_ prefixes: [String]) throws {
        let rules = prefixes.map { AccessRule(.tcp, .write, store: test, keyPrefix: $0) }
        try server.server.change(stores: [], limits: ServerLimits(), rules: rules)
      }
      let client = try server.connect()
      try client.send(Request.watch(id: 5, prefix: "mine:"))
      #expect(try client.receive().more)
      try change(["theirs:", "mine:"])
      try change(["mi"])
      #expect(try client.call(Request.put("mine:a", [7], id: 6)).isDone)
      #expect(try client.receive().changes.map(\.key) == ["mine:a"])
      try change(["mine:a"])
      #expect(try client.receive().isError(.notPermitted, id: 5))
    }

    @Test func `the list of stores counts only entries that a client may read`() throws {
      let server = try populated()
      for granted in Granted.allCases {
        try server.server.change(stores: [], limits: ServerLimits(), rules: [granted.rule()])
        let client = try TestClient(server.address)
        try client.handshake()
        let reply = try client.call(Request.make(.storeList, store: 0, id: 4))
        let stores = try #require(unsafe ListedStore.decode(reply.body.span.bytes))
        let expected: [String: UInt64] =
          switch granted {
          case .otherStore: ["other": 0]
          case .longerPrefix: ["test": 0]
          case .otherPrefix, .readOfPrefix, .writeOfPrefix: ["test": 1]
          case .read, .write, .admin: ["test": 4]
          }
        #expect(Dictionary(uniqueKeysWithValues: stores.map { ($0.name, $0.entries) }) == expected, "\(granted)")
      }
    }
  }
}
