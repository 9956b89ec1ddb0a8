import LarderServer
import TestSupport
import Testing
import Wire

extension ServerTests {
  struct ModelTests {
    /// Each thread has its own keys in a shared store, so that its model can predict every reply. It sends requests of
    /// all kinds together, because they are executed in the order in which they were sent.
    @Test(arguments: [false, true])
    func `sixteen clients on two workers agree with their models, to the last entry`(_ tcp: Bool) throws {
      let server = try TestServer(workers: 2, tcp: tcp) {
        $0.findTime = .seconds(60)
        $0.finds = 1_024
      }
      let seed = UInt64.random(in: 1...999_999)
      let models = try inParallel(16) { index in
        var run = ModelRun(client: try server.connect(credit: 1 << 24), index: index, seed: seed)
        for _ in 0..<60 { try run.runBatch() }
        return (entries: run.model, mismatches: run.mismatches)
      }
      for mismatch in models.flatMap(\.mismatches).prefix(5) { Issue.record("seed \(seed): \(mismatch)") }
      let client = try server.connect(credit: 1 << 24)
      try client.send(Request.all(id: 3))
      let entries = try client.receiveReplyStream(3).flatMap(\.entries)
      let expected = models.reduce(into: [:]) { all, model in all.merge(model.entries) { $1 } }
      #expect(Dictionary(uniqueKeysWithValues: entries.map { ($0.text, $0.value) }) == expected, "seed \(seed)")
      #expect(entries.map(\.text) == expected.keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) })
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }
  }
}

/// One client's random requests, in batches that are sent together, and a model of its part of the store.
private struct ModelRun {
  private let client: TestClient
  private let prefix: String
  private var random: SeededGenerator
  private(set) var model: [String: [UInt8]] = [:]
  private(set) var mismatches: [String] = []

  init(client: TestClient, index: Int, seed: UInt64) {
    self.client = client
    prefix = "client\(index)/"
    random = SeededGenerator(seed: seed &+ UInt64(index))
  }

  mutating func runBatch() throws {
    var requests: [UInt8] = []
    var expected: [UInt32: Expectation] = [:]
    for id in 1...UInt32.random(in: 1...20, using: &random) {
      let (request, expectation) = request(id)
      requests += request
      expected[id] = expectation
    }
    // The requests may be split anywhere.
    let cut = Int.random(in: 0...requests.count, using: &random)
    try client.send(Array(requests[..<cut]))
    try client.send(Array(requests[cut...]))
    var entries: [UInt32: [TestEntry]] = [:]
    while !expected.isEmpty {
      let reply = try client.receive()
      entries[reply.id, default: []] += reply.entries
      guard !reply.more else { continue }
      guard let expectation = expected.removeValue(forKey: reply.id) else {
        mismatches.append("an unexpected reply: \(reply)")
        return
      }
      if !expectation.isMet(by: reply, entries[reply.id] ?? []) {
        mismatches.append("\(reply) instead of \(expectation)")
      }
    }
  }

  private enum Expectation {
    case value([UInt8]?)
    case values([[UInt8]?])
    case entries([(String, [UInt8])])
    case number(UInt64)
    case revision
    case conditionFailed
    case changed(Int)
    case found(Int)

    func isMet(by reply: Reply, _ entries: [TestEntry]) -> Bool {
      switch self {
      case .value(let value?): reply.isDone && entries.map(\.value) == [value]
      case .value(nil): reply.code == .notFound
      case .values(let values): reply.isDone && entries.map { $0.isPresent ? $0.value : nil } == values
      case .entries(let list):
        reply.isDone && entries.map(\.text) == list.map(\.0) && entries.map(\.value) == list.map(\.1)
      case .number(let number): reply.number == number
      case .revision: reply.number ?? 0 > 0
      case .conditionFailed: reply.code == .conditionFailed
      case .changed(let count):
        unsafe MatchingChanges(reply.body.span.bytes).map { $0.matched == count && $0.changed == count } ?? false
      case .found(let count): unsafe FindResult(reply.body.span.bytes, at: 0)?.found == UInt64(count)
      }
    }
  }

  private mutating func request(_ id: UInt32) -> ([UInt8], Expectation) {
    switch Int.random(in: 0..<12, using: &random) {
    case 0: return get(id)
    case 1, 2: return put(id)
    case 3: return putMany(id)
    case 4:
      let key = randomKey()
      return (Request.delete(key, id: id), .number(model.removeValue(forKey: key) == nil ? 0 : 1))
    case 5:
      let keys = (0..<Int.random(in: 0...4, using: &random)).map { _ in randomKey() }
      let gone = keys.count { model.removeValue(forKey: $0) != nil }
      return (Request.keys(.deleteMany, keys, id: id), .number(UInt64(gone)))
    case 6:
      let keys = (0..<Int.random(in: 0...6, using: &random)).map { _ in randomKey() }
      return (Request.keys(.getMany, keys, id: id), .values(keys.map { model[$0] }))
    case 7: return (Request.make(.count, id: id, Array(prefix.utf8)), .number(UInt64(model.count)))
    case 8: return apply(id)
    case 9: return changeMatching(id)
    case 10: return find(id)
    default: return page(id)
    }
  }

  private mutating func get(_ id: UInt32) -> ([UInt8], Expectation) {
    let key = randomKey()
    return (Request.get(key, id: id), .value(model[key]))
  }

  private mutating func put(_ id: UInt32) -> ([UInt8], Expectation) {
    let (key, value) = (randomKey(), randomValue())
    if Bool.random(using: &random) {
      model[key] = value
      return (Request.put(key, value, id: id), .revision)
    }
    let request = Request.put(key, value, id: id, ifAbsent: true)
    guard model[key] == nil else { return (request, .conditionFailed) }
    model[key] = value
    return (request, .revision)
  }

  private mutating func putMany(_ id: UInt32) -> ([UInt8], Expectation) {
    let entries = (0..<Int.random(in: 1...5, using: &random)).map { _ in (key: randomKey(), value: randomValue()) }
    for entry in entries { model[entry.key] = entry.value }
    return (Request.putMany(entries, id: id), .revision)
  }

  private mutating func page(_ id: UInt32) -> ([UInt8], Expectation) {
    let reverse = Bool.random(using: &random)
    let (offset, limit) = (Int.random(in: 0...5, using: &random), Int.random(in: 0...20, using: &random))
    var entries = model.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }
    if reverse { entries.reverse() }
    let request = Request.page(
      id: id, offset: UInt64(offset), limit: UInt32(limit), prefix: prefix, reverse: reverse)
    return (request, .entries(entries.dropFirst(offset).prefix(limit).map { ($0.key, $0.value) }))
  }

  // MARK: Documents

  /// Returns the number in a value that is a document.
  private func number(in value: [UInt8]) -> Int? {
    value.first == UInt8(ascii: "{") ? try? ServerTests.ApplyTests.number(in: value) : nil
  }

  /// Returns a document with its number incremented.
  private func incremented(_ value: [UInt8], _ number: Int) -> [UInt8] {
    let size = value.count - ServerTests.ApplyTests.document(number).count
    return ServerTests.ApplyTests.document(number + 1, size: size)
  }

  /// Returns an apply, of which a job takes care if it has large documents or many operations.
  private mutating func apply(_ id: UInt32) -> ([UInt8], Expectation) {
    var operations: [TestOperation] = []
    for _ in 0..<(Bool.random(using: &random) ? 3 : 100) {
      let key = randomKey()
      if let value = model[key], let number = number(in: value) {
        operations.append(.update(key, #"{"$inc":{"n":1}}"#))
        model[key] = incremented(value, number)
      } else if Bool.random(using: &random) {
        let value = randomDocument()
        operations.append(.put(key, value))
        model[key] = value
      } else {
        operations.append(.delete(key))
        model[key] = nil
      }
    }
    // So that the request certainly changes something.
    operations.append(.put(prefix, [1]))
    model[prefix] = [1]
    return (Request.apply(operations, id: id), .revision)
  }

  private mutating func changeMatching(_ id: UInt32) -> ([UInt8], Expectation) {
    let (selector, matching) = selection()
    let deletes = Int.random(in: 0..<4, using: &random) == 0
    for (key, number) in matching { model[key] = deletes ? nil : incremented(model[key]!, number) }
    return (
      Request.change(id: id, selector: selector, update: deletes ? nil : #"{"$inc":{"n":1}}"#),
      .changed(matching.count)
    )
  }

  private mutating func find(_ id: UInt32) -> ([UInt8], Expectation) {
    let (selector, matching) = selection()
    return (Request.find(id: id, countOnly: true, selector: selector), .found(matching.count))
  }

  /// Returns a selector, and the documents of this client that match it, with their numbers.
  private mutating func selection() -> (selector: String, matching: [String: Int]) {
    let limit = Int.random(in: 0..<120, using: &random)
    let matching = model.compactMapValues { number(in: $0) }.filter { $0.value < limit }
    return (#"{"_id":{"$beginsWith":"\#(prefix)"},"n":{"$lt":\#(limit)}}"#, matching)
  }

  private mutating func randomDocument() -> [UInt8] {
    let size = Int.random(in: 0..<10, using: &random) == 0 ? 30_000 : Int.random(in: 0..<50, using: &random)
    return ServerTests.ApplyTests.document(Int.random(in: 0..<100, using: &random), size: size)
  }

  private mutating func randomKey() -> String { prefix + String(Int.random(in: 0..<30, using: &random)) }

  private mutating func randomValue() -> [UInt8] {
    if Bool.random(using: &random) { return randomDocument() }
    let size = Int.random(in: 0..<20, using: &random) == 0 ? 50_000 : Int.random(in: 0..<200, using: &random)
    return [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: size)
  }
}
