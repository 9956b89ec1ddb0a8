import Documents
import Foundation
import LarderServer
import Platform
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Applies, gets and puts of several clients at the same time.
  struct LinearizabilityTests {
    // MARK: The checker

    private typealias Event = (start: UInt64, end: UInt64, operation: History.Operation, outcome: History.Outcome)

    private func isLinearizable(_ events: [Event]) -> Bool {
      History(calls: events.map { .init(start: $0.start, end: $0.end, operation: $0.operation, outcome: $0.outcome) })
        .isLinearizable(from: History.State(revision: 0))
    }

    @Test func `the linearizability checker accepts linearizable histories`() {
      #expect(isLinearizable([]))
      // Gets that overlap a put see it or not, and what one has seen, a later one sees.
      #expect(
        isLinearizable([
          (1, 10, .put("a", 1), .written(revision: 1)), (2, 3, .get("a"), .absent),
          (4, 5, .get("a"), .entry(1, revision: 1)), (4, 6, .get("a"), .absent),
          (7, 8, .get("a"), .entry(1, revision: 1)),
        ]))
      // The put that ended later came first.
      #expect(
        isLinearizable([
          (1, 10, .put("a", 1), .written(revision: 1)), (2, 3, .put("a", 2), .written(revision: 2)),
          (11, 12, .get("a"), .entry(2, revision: 2)),
        ]))
      #expect(
        isLinearizable([
          (1, 5, .apply([.checkAbsent("a"), .put("a", 1), .put("b", 1)]), .written(revision: 1)),
          (2, 6, .apply([.checkAbsent("a"), .put("a", 2)]), .conditionFailed(1)),
          (7, 9, .apply([.check("b", revision: 1), .increment("a", 4)]), .written(revision: 2)),
          (8, 9, .apply([.delete("none")]), .written(revision: 0)), (7, 9, .put("c", 1), .outpaced),
          (10, 11, .get("a"), .entry(5, revision: 2)),
          (10, 11, .apply([.put("x", 1), .increment("c", 1)]), .notFound(2)),
        ]))
    }

    @Test func `the linearizability checker rejects histories that aren't linearizable`() {
      // A get that misses a put that has ended.
      #expect(!isLinearizable([(1, 2, .put("a", 1), .written(revision: 1)), (3, 4, .get("a"), .absent)]))
      // A value that disappears again.
      #expect(
        !isLinearizable([
          (1, 10, .put("a", 1), .written(revision: 1)), (2, 3, .get("a"), .entry(1, revision: 1)),
          (4, 5, .get("a"), .absent),
        ]))
      // Half of an apply.
      let both = History.Operation.apply([.put("a", 1), .put("b", 1)])
      #expect(
        !isLinearizable([
          (1, 10, both, .written(revision: 1)), (2, 3, .get("a"), .entry(1, revision: 1)), (4, 5, .get("b"), .absent),
        ]))
      // A lost increment.
      #expect(
        !isLinearizable([
          (1, 2, .put("a", 0), .written(revision: 1)), (3, 9, .apply([.increment("a", 1)]), .written(revision: 2)),
          (3, 9, .apply([.increment("a", 1)]), .written(revision: 3)), (10, 11, .get("a"), .entry(1, revision: 3)),
        ]))
      // Two that both found the key absent.
      let create = History.Operation.apply([.checkAbsent("a"), .put("a", 1)])
      #expect(!isLinearizable([(1, 9, create, .written(revision: 1)), (1, 9, create, .written(revision: 2))]))
      // A condition that failed although it held, and a write in spite of it.
      #expect(!isLinearizable([(1, 2, create, .conditionFailed(1))]))
      #expect(
        !isLinearizable([
          (1, 2, create, .written(revision: 1)), (3, 4, create, .conditionFailed(1)),
          (5, 6, .get("a"), .entry(1, revision: 2)),
        ]))
      // Revisions against the order of time.
      #expect(
        !isLinearizable([(1, 2, .put("a", 1), .written(revision: 2)), (3, 4, .put("a", 2), .written(revision: 1))]))
    }

    // MARK: The server

    @Test func `applies, gets and puts of four clients are linearizable, on every engine`() throws {
      let rounds = SeededGenerator.isThorough ? 400 : 40
      for seed in SeededGenerator.seeds(1) {
        let opened = try StoresOfAllEngines()
        let server = try TestServer(workers: 2, serving: opened.stores) { $0.findTime = .seconds(60) }
        for store in opened.stores {
          let name = store.name.text
          let main = try server.connect(store: name)
          var outpacedCount = 0
          for round in 0..<rounds {
            let revision = try #require(main.figures(store: 1)["revision"])
            let keys = ["a", "b", "large"].map { "\(round) \($0)" }
            let calls = try inParallel(4) { client in
              let generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(round * 4 + client))
              var caller = Caller(try server.connect(store: name), keys, generator)
              return try (0..<10).map { _ in try caller.makeCall() }
            }
            let history = History(calls: calls.flatMap(\.self))
            #expect(
              history.isLinearizable(from: History.State(revision: revision)),
              "seed \(seed), \(name), round \(round): \(history.calls)")
            outpacedCount += history.calls.count { $0.outcome == .outpaced }
          }
          // Few of 40 calls per round.
          #expect(outpacedCount <= rounds, "seed \(seed), \(name)")
        }
      }
    }
  }
}

/// A client that makes random calls and notes what it is told.
private struct Caller {
  private let client: TestClient
  private let keys: [String]
  private var random: SeededGenerator
  /// The revisions that were seen, which a later check may expect.
  private var revisions: [String: UInt64] = [:]

  init(_ client: TestClient, _ keys: [String], _ random: SeededGenerator) {
    (self.client, self.keys, self.random) = (client, keys, random)
  }

  private mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  mutating func makeCall() throws -> History.Call {
    let key = keys[number(keys.count)]
    let operation: History.Operation =
      switch number(4) {
      case 0: .get(key)
      case 1: .put(key, number(100))
      default: .apply(steps())
      }
    let start = monotonicNanoseconds()
    try client.send(request(operation))
    let reply = try client.receive(within: 30)
    let end = monotonicNanoseconds()
    return History.Call(start: start, end: end, operation: operation, outcome: try outcome(of: operation, reply))
  }

  private mutating func steps() -> [History.Step] {
    var written: Set<String> = []
    var steps: [History.Step] = []
    for _ in 0...number(4) {
      let step = step()
      switch step {
      case .put(let key, _), .increment(let key, _): written.insert(key)
      // Whether creating an entry and deleting it again is a change is up to the server.
      case .delete(let key) where written.contains(key): continue
      default: break
      }
      steps.append(step)
    }
    return steps
  }

  private mutating func step() -> History.Step {
    let key = keys[number(keys.count)]
    switch number(6) {
    case 0: return .put(key, number(100))
    case 1: return .delete(key)
    case 2, 3: return .increment(key, 1 + number(5))
    default:
      if let revision = revisions[key], number(4) > 0 { return .check(key, revision: revision) }
      return .checkAbsent(key)
    }
  }

  /// The documents of one key are so large that a job updates them.
  private func document(_ key: String, _ number: Int) -> [UInt8] {
    ServerTests.ApplyTests.document(number, size: key.hasSuffix("large") ? ServerTests.ApplyTests.largeSize : 0)
  }

  private func request(_ operation: History.Operation) -> [UInt8] {
    switch operation {
    case .get(let key): Request.get(key, id: 5)
    case .put(let key, let number): Request.put(key, document(key, number), id: 5)
    case .apply(let steps):
      Request.apply(
        steps.map { step in
          switch step {
          case .put(let key, let number): .put(key, document(key, number))
          case .delete(let key): .delete(key)
          case .increment(let key, let amount): .update(key, #"{"$inc":{"n":\#(amount)}}"#)
          case .check(let key, let revision): .check(key, revision: revision)
          case .checkAbsent(let key): .checkAbsent(key)
          }
        }, id: 5)
    }
  }

  private mutating func outcome(of operation: History.Operation, _ reply: Reply) throws -> History.Outcome {
    switch operation {
    case .get(let key):
      guard reply.isDone else {
        try #require(reply.isError(.notFound, id: 5), "\(reply)")
        revisions[key] = nil
        return .absent
      }
      let entry = try #require(reply.entries.first)
      revisions[key] = entry.revision
      return .entry(try ServerTests.ApplyTests.number(in: entry.value), revision: entry.revision)
    case .put(let key, _):
      let revision = try #require(reply.number, "\(reply)")
      revisions[key] = revision
      return .written(revision: revision)
    case .apply(let steps):
      if let revision = reply.number {
        for case .put(let key, _) in steps { revisions[key] = revision }
        return .written(revision: revision)
      }
      guard reply.message.hasPrefix("operation ") else {
        try #require(reply.isError(.tooManyRequests, id: 5), "\(reply)")
        return .outpaced
      }
      let number = try #require(Int(reply.message.split(separator: " ")[1]))
      if reply.code == .notFound { return .notFound(number) }
      try #require(reply.isError(.conditionFailed, id: 5), "\(reply)")
      return .conditionFailed(number)
    }
  }
}
