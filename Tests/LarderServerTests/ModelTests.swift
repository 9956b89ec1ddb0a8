import LarderServer
import TestSupport
import Testing
import Wire

extension ServerTests {
  struct ModelTests {
    /// Each thread has its own keys in a shared store, so that its model can predict every reply.
    @Test(arguments: [false, true])
    func `sixteen clients on two workers agree with their models, to the last entry`(_ tcp: Bool) throws {
      let server = try TestServer(workers: 2, tcp: tcp)
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
      }
    }
  }

  private mutating func request(_ id: UInt32) -> ([UInt8], Expectation) {
    switch Int.random(in: 0..<9, using: &random) {
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

  private mutating func randomKey() -> String { prefix + String(Int.random(in: 0..<30, using: &random)) }

  private mutating func randomValue() -> [UInt8] {
    let size = Int.random(in: 0..<20, using: &random) == 0 ? 50_000 : Int.random(in: 0..<200, using: &random)
    return [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: size)
  }
}
