import Documents
import LarderServer
import Platform
import ReplicationTestSupport
import TestSupport
import Testing

@testable import Larder

private struct Account: Codable, Equatable {
  var balance: Int
}

/// Closures whose reads and writes take effect together.
@Suite(.serialized) struct TransactionTests {
  private struct Stop: Error {}

  @Test func `reads and writes of a closure take effect together when it returns`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("alice", #"{"balance":100}"#.utf8)
      try await items.put("gone", [1])
      let sum = try await items.perform { context in
        var alice = try #require(try await context.get("alice", as: Account.self))
        alice.balance -= 10
        try context.put("alice", alice)
        try await context.insert("bob", Account(balance: 10))
        context.delete("gone")
        context.put("list", .list([[1]]), expiresIn: .seconds(60))
        // Nothing is written yet, and the context sees its own writes.
        #expect(try await items.get("bob") == nil)
        #expect(try await context.get("gone") == nil)
        let accounts = try await context.getAll(["alice", "bob", "gone", "nobody"], as: Account.self)
        #expect(accounts == [alice, Account(balance: 10), nil, nil])
        #expect(try await context.getAll(["list"]) == [.list([[1]])])
        return accounts.reduce(0) { $0 + ($1?.balance ?? 0) }
      }
      #expect(sum == 100)
      let entries = try await items.getMany(["alice", "bob", "gone", "list"])
      #expect(
        entries[0]?.bytes == Array(#"{"balance":90}"#.utf8) && entries[1]?.bytes == Array(#"{"balance":10}"#.utf8))
      #expect(entries[2] == nil && entries[3]?.expiresIn != nil)
      #expect(Set(entries.compactMap { $0?.revision }).count == 1)
    }
  }

  @Test func `a query finds the context's own writes`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      for number in 0..<6 { try await items.put("k\(number)", #"{"n":\#(number)}"#.utf8) }
      try await items.perform { context in
        try context.put("k1", ["n": 10])
        try context.put("k2", "no document")
        context.delete("k3")
        try context.put("k9", ["n": 3])
        func ids(_ query: DocumentQuery) async throws -> [String] { try await context.find(query).compactMap(\.id) }
        let all = DocumentQuery(.all, sort: ["n"])
        #expect(try await ids(all) == ["k0", "k9", "k4", "k5", "k1"])
        #expect(try await ids(DocumentQuery(.field("n", .less(5)))) == ["k0", "k4", "k9"])
        for skip in 0..<6 {
          for limit in [0, 1, 2, 3, .max] {
            let page = DocumentQuery(.all, sort: ["n"], skip: skip, limit: limit, fields: ["n"])
            #expect(try await ids(page) == Array(try await ids(all).dropFirst(skip).prefix(limit)), "\(skip) \(limit)")
          }
        }
        let own = try #require(try await context.find(.field("n", .equal(10))).first)
        #expect(own.id == "k1" && own.revision == nil)
        await #expect(throws: LarderError.self) { try await ids(DocumentQuery(.all, skip: -1)) }
        await #expect(throws: LarderError.self) { try await ids(DocumentQuery(.all, bookmark: "b")) }
      }
      #expect(try await items.find(.all).result().documents.compactMap(\.id) == ["k0", "k1", "k4", "k5", "k9"])
    }
  }

  @Test func `a closure that throws writes nothing, and its error is thrown`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      var runs = 0
      do {
        try await items.perform(retries: 5) { context in
          runs += 1
          try context.put("a", "text")
          throw Stop()
        }
      } catch { #expect(error is Stop && runs == 1) }
      let count = try await items.count()
      #expect(count == 0)
    }
  }

  @Test func `a transaction checks everything it has read, also absent entries`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      typealias Read = @Sendable (TransactionContext) async throws -> Void
      let reads: [(Read, changed: String)] = [
        ({ _ = try await $0.get("a") }, "a"), ({ _ = try await $0.get("absent") }, "absent"),
        ({ _ = try await $0.getAll(["b", "a", "absent"]) }, "b"),
        ({ _ = try await $0.getAll(["b", "absent"]) }, "absent"),
        ({ _ = try await $0.find(.field("n", .greater(1))) }, "b"),
        ({ _ = try await $0.find(DocumentQuery(.all, fields: ["n"])) }, "a"),
        ({ try await $0.insert("absent", "text") }, "absent"),
      ]
      for (read, changed) in reads {
        for isDeletion in [false, true] where !isDeletion || changed != "absent" {
          try await items.deleteAll()
          try await items.put("a", #"{"n":1}"#.utf8)
          try await items.put("b", #"{"n":2}"#.utf8)
          var runs = 0
          do {
            try await items.perform { context in
              runs += 1
              try await read(context)
              context.put("written", .single([1]))
              if isDeletion { try await items.delete(changed) } else { try await items.put(changed, #"{"n":2}"#.utf8) }
            }
            Issue.record("there is no conflict on \(changed)")
          } catch let error as LarderError {
            #expect(error.kind == .conditionFailed && error.outcome == .notExecuted && error.isSafeToRetry)
            #expect(error.message.contains("\"\(changed)\""), "\(error)")
          }
          #expect(try await items.get("written") == nil)
          #expect(runs == 1)
        }
      }
    }
  }

  @Test func `a transaction's write of an entry it has read carries the condition`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("a", [1])
      for change in ["put", "delete", "create"] {
        var runs = 0
        try await items.perform(retries: 1) { context in
          runs += 1
          _ = try await context.getAll(["a", "absent"])
          switch change {
          case "put": context.put("a", .single([2]))
          case "delete": context.delete("a")
          default: context.put("absent", .single([3]))
          }
          if runs == 1 { try await items.put(change == "create" ? "absent" : "a", [9]) }
        }
        #expect(runs == 2, "\(change)")
        let entries = try await items.getMany(["a", "absent"]).map { $0?.bytes }
        switch change {
        case "put": #expect(entries == [[2], nil])
        case "delete": #expect(entries == [nil, nil])
        default: #expect(entries == [nil, [3]])
        }
      }
    }
  }

  @Test func `entries that a transaction hasn't read don't conflict, nor do new matches`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("a", #"{"n":1}"#.utf8)
      try await items.put("b", #"{"n":2}"#.utf8)
      try await items.perform { context in
        #expect(try await context.find(.field("n", .greater(1))).map(\.id) == ["b"])
        try await items.put("a", #"{"n":7}"#.utf8)
        context.delete("other")
        context.put("written", .single([1]))
      }
      #expect(try await items.get("written") != nil)
    }
  }

  @Test func `two reads that differ are a conflict at once`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("a", [1])
      var runs = 0
      let values = try await items.perform(retries: 3) { context in
        runs += 1
        let first = try await context.get("a")
        if runs < 3 { try await items.put("a", [UInt8(runs + 1)]) }
        do {
          return [first, try await context.get("a")]
        } catch let error as LarderError {
          #expect(error.kind == .conditionFailed && error.isSafeToRetry && runs < 3)
          // Another error instead of it changes nothing.
          throw Stop()
        }
      }
      #expect(runs == 3 && values == [.single([3]), .single([3])])
      // A closure that goes on in spite of it does not commit.
      runs = 0
      await #expect(throws: LarderError.self) {
        try await items.perform { context in
          runs += 1
          _ = try await context.get("a")
          try await items.put("a", [7])
          _ = try? await context.get("a")
          context.put("b", .single([1]))
        }
      }
      #expect(try await items.get("b") == nil && runs == 1)
    }
  }

  @Test func `a transaction that has seen a conflict doesn't commit, even if the entry is restored`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      for hasWrites in [false, true] {
        do {
          try await items.perform { context in
            _ = try await context.get("a")
            try await items.put("a", [1])
            #expect(await (try? context.get("a")) == nil)
            try await items.delete("a")
            if hasWrites { context.put("b", .single([1])) }
          }
          Issue.record("the conflict is forgotten")
        } catch let error as LarderError {
          #expect(error.kind == .conditionFailed && error.isSafeToRetry)
        }
        #expect(try await items.get("b") == nil)
      }
    }
  }

  @Test func `a transaction of several reads without writes is checked, too`() async throws {
    let server = try FakeServer()
    server.put("a", [1])
    let items = try LarderClient(server.address, configuration: configuration()).store("items")
    _ = try await items.perform { try await $0.get("a") }
    try await items.perform { _ in }
    #expect(server.count(of: .apply) == 0)
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("a", [1])
      await #expect(throws: LarderError.self) {
        try await items.perform { context in
          _ = try await context.get("a")
          try await items.putMany([Write("a", [2]), Write("b", [2])])
          return try await context.get("b")
        }
      }
    }
  }

  @Test func `an insert of a key that has an entry fails, and is not repeated`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("a", [1])
      var runs = 0
      do {
        try await items.perform(retries: 5) { context in
          runs += 1
          try await context.insert("a", "text")
        }
        Issue.record("the key was inserted again")
      } catch let error as LarderError {
        #expect(error.kind == .conditionFailed && error.outcome == .rejected && runs == 1)
      }
      try await items.perform { context in
        context.delete("a")
        try await context.insert("a", "new")
        await #expect(throws: LarderError.self) { try await context.insert("a", "newer") }
        #expect(try await context.get("a", as: String.self) == "new")
      }
      #expect(try await items.get("a")?.bytes == Array("new".utf8))
    }
  }

  @Test func `values are converted as in data sources`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.perform { context in
        try context.put("text", "é")
        try context.put("bytes", [UInt8]([0, 255]))
        try context.put("account", Account(balance: 3))
        context.put("list", .list([[1]]))
      }
      let values = try await items.perform { context in
        (
          try await context.get("text", as: String.self), try await context.get("bytes", as: [UInt8].self),
          try await context.find(.field("balance", .equal(3)), as: Account.self)
        )
      }
      #expect(values.0 == "é" && values.1 == [0, 255] && values.2 == [Account(balance: 3)])
      await #expect(throws: LarderError.self) {
        try await items.perform { try await $0.get("list", as: String.self) }
      }
    }
  }

  @Test(arguments: ["memory", "log", "directory", "replicated"])
  func `concurrent transfers are neither lost nor seen half-done`(engine: String) async throws {
    let folder = try TemporaryFolder()
    try await withServer {
      $0.workers = 2
      $0.dataPath = folder.file("data")
      $0.shareStores(in: SimulatedLog())
    } _: { client, _ in
      try await client.createStore("bank", engine: engine)
      let bank = client.store("bank").with(timeout: .seconds(60))
      let names = ["alice", "bob", "cleo", "dan"]
      try await bank.putMany(names.map { Write($0, Array(#"{"balance":100}"#.utf8)) })
      let transfersPerTask = 25
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<6 {
          group.addTask {
            for round in 0..<transfersPerTask {
              let (payer, payee) = (names[(task + round) % 4], names[(task + round + 1 + round % 3) % 4])
              try await bank.perform(retries: 1_000) { context in
                var accounts = try await context.getAll([payer, payee], as: Account.self).compactMap(\.self)
                let count = try await context.get("count", as: Int.self) ?? 0
                accounts[0].balance -= 1
                accounts[1].balance += 1
                try context.put(payer, accounts[0])
                try context.put(payee, accounts[1])
                try context.put("count", count + 1)
              }
            }
          }
        }
        group.addTask {
          for _ in 0..<50 {
            let accounts = try await bank.perform(retries: 1_000) { context in
              var accounts: [Account?] = []
              for name in names { accounts.append(try await context.get(name, as: Account.self)) }
              return accounts
            }
            #expect(accounts.reduce(0) { $0 + $1!.balance } == 400)
          }
        }
        try await group.waitForAll()
      }
      let end = try await bank.find(.all).decoded(as: Account.self).reduce(0) { $0 + $1.balance }
      #expect(end == 400)
      #expect(try await bank.get("count")?.bytes == Array("\(6 * transfersPerTask)".utf8))
    }
  }
}
