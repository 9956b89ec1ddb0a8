import Documents
import Foundation
import LarderServer
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Finds that are made to cost time or memory, and clients that don't read what was found.
  struct FindLimitTests {
    // MARK: Finds that are never read

    /// One client gives no credit; the other one gives it, but doesn't read.
    @Test(arguments: [1, 1 << 30] as [UInt32], ["", #"["n","x"]"#])
    func `finds that are never read use little memory, delay nobody, and end with their connections`(
      credit: UInt32, fields: String
    ) throws {
      let server = try TestServer { $0.finds = 4 }
      let witness = try server.connect(credit: 1 << 30)
      for start in stride(from: 0, to: 200, by: 50) {
        let documents = (start..<start + 50).map { number in
          let text = #"{"n":\#(number),"x":"\#(String(repeating: "x", count: 60_000))"}"#
          return (key: "key\(1_000 + number)", value: Array(text.utf8))
        }
        #expect(try witness.call(Request.putMany(documents, id: 3)).isDone)
      }
      #expect(try witness.ensureIndex(#"{"fields":["n"]}"#).isCreated)
      try witness.waitForIndexes()
      let memory = try witness.figures()["memory_bytes"]!
      var clients = try (0..<4).map { _ in try server.connect(credit: credit) }
      for client in clients {
        try client.send(Request.find(id: 5, selector: #"{"n":{"$gte":0}}"#, fields: fields))
        #expect(try eventually { try witness.figures()["finds"] == 0 })
      }
      #expect(try eventually { try witness.figures()["find_results_bytes"] == 4 * 200 * 4 })
      usleep(200_000)
      let figures = try witness.figures()
      // A client's output stops growing at 1 MiB, with whole frames.
      #expect(figures["finds"] == 0 && figures["output_bytes"]! <= 4 * (1 << 20 + 2 * 65_548), "\(figures)")
      #expect(figures["memory_bytes"]! < memory + 1 << 20, "\(figures)")
      // Everything else goes on.
      #expect(try witness.call(Request.get("key1007", id: 6)).isDone)
      #expect(try witness.call(Request.put("key1007", Array(#"{"n":-1}"#.utf8), id: 7)).isDone)
      #expect(try witness.find(#"{"n":{"$gte":0}}"#, countOnly: true).result.found == 199)
      clients.removeAll()
      #expect(try eventually { try witness.figures(store: 1)["snapshots"] == 0 })
      #expect(try witness.figures()["output_bytes"] == 0 && witness.figures()["find_results_bytes"] == 0)
    }

    // MARK: Hostile selectors

    private enum Ending {
      /// The selector is no selector.
      case refused
      /// The find ends with this number of documents, or exceeds a limit.
      case found(UInt64)
      /// The find exceeds a limit.
      case stopped
    }

    private static func list(_ count: Int, _ element: (Int) -> String) -> String {
      (0..<count).map(element).joined(separator: ",")
    }

    private static func nested(_ count: Int, _ open: String, _ core: String, _ close: String) -> String {
      String(repeating: open, count: count) + core + String(repeating: close, count: count)
    }

    /// Selectors about documents `{"n":0,"g":0,"x":"xxx…"}`, `{"n":1,…}`, …
    private static let hostileSelectors: [(name: String, text: String, ending: Ending)] = [
      ("nested in $not", nested(20_000, #"{"$not":"#, #"{"n":1}"#, "}"), .refused),
      ("nested in $or", nested(31, #"{"$or":[{"n":-1},"#, #"{"n":1}"#, "]}"), .found(1)),
      ("nested arrays", #"{"n":\#(nested(100_000, "[", "1", "]"))}"#, .refused),
      ("more than 1 MiB", #"{"n":"\#(String(repeating: "n", count: 1 << 20))"}"#, .refused),
      ("65,536 values", #"{"n":{"$in":[\#(list(65_536) { "\($0)" })]}}"#, .found(2_000)),
      ("65,537 values", #"{"n":{"$in":[\#(list(65_537) { "\($0)" })]}}"#, .refused),
      ("65,536 other values", #"{"n":{"$nin":[\#(list(65_536) { "\($0 + 1_999)" })]}}"#, .found(1_999)),
      (
        "a product of values",
        #"{"n":{"$in":[\#(list(30_000) { "\($0)" })]},"g":{"$in":[\#(list(30_000) { "\($0)" })]}}"#, .found(2_000)
      ),
      ("3,300 alternatives", #"{"$or":[\#(list(3_300) { #"{"n":\#($0),"g":0}"# })]}"#, .found(2_000)),
      ("10,001 alternatives", #"{"$or":[\#(list(10_001) { #"{"n":\#($0)}"# })]}"#, .refused),
      ("many disjunctions", #"{"$and":[\#(list(300) { #"{"$or":[{"n":\#($0)},{"g":0},{"x":1}]}"# })]}"#, .found(2_000)),
      (
        "disjunctions in each other",
        nested(12, #"{"$or":[{"n":1,"g":1},{"$and":[{"$or":[{"n":2},{"g":2}]},"#, #"{"g":0}"#, "]}]}"), .found(1)
      ),
      ("expensive expressions", hostileSelector, .stopped),
      ("a backtracking expression", #"{"x":{"$regex":"^(x+x+)+y$"}}"#, .found(0)),
      ("a repeated expression", #"{"x":{"$regex":"(((x{0,30}){0,30}){0,30}){0,30}y"}}"#, .refused),
      ("a pattern with many runs", #"{"x":{"$like":"\#(String(repeating: "*x", count: 5_000))*y"}}"#, .found(0)),
      ("many absent fields", "{\(list(9_000) { #""f\#($0)":{"$exists":false}"# })}", .found(2_000)),
    ]

    @Test func `hostile selectors are refused, or end within their limits`() throws {
      let server = try TestServer { $0.findTime = .milliseconds(500) }
      let (client, witness) = (try server.connect(credit: 1 << 30), try server.connect())
      try client.putNumbered(2_000, size: 200)
      for definition in [#"{"fields":["n"]}"#, #"{"fields":["g","n"]}"#, #"{"fields":["x"],"where":{"n":{"$gt":5}}}"#] {
        #expect(try client.ensureIndex(definition).isCreated)
      }
      try client.waitForIndexes()
      for (name, text, ending) in Self.hostileSelectors {
        try client.send(Request.find(id: 5, countOnly: true, selector: text))
        let reply = try client.receive(within: 60)
        let isStopped = reply.isError(.queryStopped, id: 5) && reply.message.contains("limits.find-time")
        switch ending {
        case .refused: #expect(reply.isError(.illegalArgument, id: 5) && reply.body.count < 1_000, "\(name): \(reply)")
        case .stopped: #expect(isStopped, "\(name): \(reply)")
        case .found(let count):
          if !isStopped { #expect(try FoundReply([reply]).result.found == count, "\(name): \(reply)") }
        }
        #expect(try witness.pings())
      }
      // What is not executed leaves nothing.
      #expect(try witness.figures()["finds"] == 0)
      #expect(try witness.figures(store: 1)["snapshots"] == 0)
    }

    // MARK: Hostile documents

    @Test func `jobs that never finish with a document delay no others, and end with their connections`() throws {
      let server = try TestServer { $0.findTime = .seconds(3_600) }
      let witness = try server.connect(credit: 1 << 30)
      try witness.putNumbered(2_000)
      try witness.putMonster()
      var clients = try (0..<4).map { _ in try server.connect(credit: 1 << 30) }
      try clients[0].send(Request.find(id: 5, countOnly: true, selector: monstrousSelector))
      try clients[1].send(Request.find(id: 5, countOnly: true, selector: #"{"$nor":[\#(monstrousSelector)]}"#))
      try clients[2].send(Request.change(id: 5, selector: monstrousSelector, update: #"{"b":1}"#))
      try clients[3].send(
        Request.aggregate(id: 5, selector: monstrousSelector, aggregation: #"{"by":["a"],"compute":[{"sum":"a"}]}"#))
      #expect(try eventually { try witness.figures()["finds"] == 4 })
      for _ in 0..<10 {
        // Too many documents for a find that runs at once.
        #expect(try witness.find(#"{"n":{"$gte":0}}"#, countOnly: true).result.found == 2_000)
      }
      #expect(try witness.figures()["finds"] == 4)
      clients.removeAll()
      #expect(try eventually { try witness.figures()["finds"] == 0 && witness.figures(store: 1)["snapshots"] == 0 })
    }

    @Test func `a job that takes too long in one document is stopped, and says why`() throws {
      let server = try TestServer { $0.findTime = .seconds(1) }
      let client = try server.connect(credit: 1 << 30)
      try client.putMonster()
      for request in [
        Request.find(id: 5, selector: monstrousSelector),
        Request.change(id: 5, selector: monstrousSelector, update: #"{"b":1}"#),
        Request.aggregate(id: 5, selector: monstrousSelector, aggregation: "{}"),
      ] {
        try client.send(request)
        let reply = try client.receive(within: 60)
        #expect(reply.isError(.queryStopped, id: 5) && reply.message.contains("limits.find-time"), "\(reply)")
      }
      #expect(try client.find(#"{"a":199999}"#).keys == ["monster"])
    }

    @Test func `a document is grouped by its own array and summed over it`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      let numbers = Self.list(20_000) { "\($0)" }
      #expect(try client.call(Request.put("a", Array(#"{"a":[\#(numbers)]}"#.utf8), id: 3)).isDone)
      let rows = try client.aggregate("", #"{"by":["a"],"compute":["count",{"sum":"a"},{"max":"a"}]}"#).rows
      #expect(
        rows
          == (0..<20_000 as Range<Int64>).compactMap { number in
            DocumentGroup(json: ["by": [[.integer(number)]], "values": [[1], [199_990_000], [19_999]]])
          })
    }

    @Test func `an expression over long arrays ends, whatever the arrays are combined with`() throws {
      let server = try TestServer { $0.findTime = .milliseconds(500) }
      let client = try server.connect(credit: 1 << 30)
      let numbers = "[\(Self.list(3_000) { "\($0)" })]"
      #expect(try client.call(Request.put("a", Array(#"{"t":\#(numbers),"u":\#(numbers)}"#.utf8), id: 3)).isDone)
      let sum = Self.nested(8, #"{"$add":[{"$field":"t"},"#, #"{"$field":"u"}"#, "]}")
      for expression in [
        #"{"$eq":[\#(sum),-1]}"#, #"{"$lt":[{"$field":"t"},{"$field":"u"}]}"#, #"{"$gt":[\#(sum),\#(sum)]}"#,
      ] {
        try client.send(Request.find(id: 5, countOnly: true, selector: #"{"$expr":\#(expression)}"#))
        let reply = try client.receive(within: 60)
        #expect(reply.isDone || reply.isError(.queryStopped, id: 5), "\(reply)")
      }
      #expect(try client.find(#"{"$expr":{"$lt":[{"$field":"t"},{"$field":"u"}]}}"#).keys == ["a"])
      #expect(try client.find(#"{"$expr":{"$eq":[{"$add":[{"$field":"t"},1]},3000]}}"#).keys == ["a"])
    }

    @Test func `a skip, a limit, a sort and fields of any size end within their limits`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(2_000)
      for isIndexed in [false, true] {
        if isIndexed {
          #expect(try client.ensureIndex(#"{"fields":["n"]}"#).isCreated)
          try client.waitForIndexes()
        }
        for sort in ["", #"["n"]"#, #"[{"n":"desc"}]"#, #"["x","n"]"#] {
          for skip in [UInt64(2_000), 1 << 32, 1 << 63, .max] {
            let found = try client.find(#"{"n":{"$gte":0}}"#, sort: sort, limit: .max, skip: skip)
            #expect(found.documents.isEmpty && found.result.text.isEmpty)
          }
          #expect(try client.find(sort: sort, limit: .max, skip: 1_999).documents.count == 1)
          #expect(try client.find(sort: sort, limit: 1, skip: .max).documents.isEmpty)
        }
        let fields = "[\(Self.list(1_000) { "\"f\($0)\"" })]"
        #expect(try client.find(limit: 3, fields: fields).documents.allSatisfy { $0.value == Array("{}".utf8) })
        let sort = "[\(Self.list(64) { "\"f\($0)\"" })]"
        #expect(try client.find(sort: sort, limit: 1).keys == ["key1000000"])
        for (sort, fields) in [
          ("[\(Self.list(65) { "\"f\($0)\"" })]", ""), ("", "[\(Self.list(1_001) { "\"f\($0)\"" })]"),
        ] {
          #expect(try client.call(Request.find(id: 5, sort: sort, fields: fields)).isError(.illegalArgument, id: 5))
        }
      }
    }
  }
}
