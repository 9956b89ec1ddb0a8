/// Measures the latency of gets of a larderd while it finds documents without an index, and while large documents are
/// put under indexes.
struct GetsBesideFinds {
  private let plan: DocumentsPlan
  private let runner: BenchRunner
  static let findingConnections = 8
  /// The selector of the finds, which matches no document.
  static let selector = #"{"age": {"$gt": 1000}}"#
  private static let largeByteCount = 16 << 20
  /// The number of keys to which large documents are put.
  private static let largeCount = 4

  init(_ plan: DocumentsPlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
  }

  func run(_ documents: [NumberedDocument]) throws -> [MeasuredFigure] {
    runner.show("loading \(documents.count) documents")
    let server = try DocumentServer(documents, in: runner.sockets)
    let address = server.address
    var latencies: [IndexWork.Neighbor: [Tally]] = [:]
    func measure(_ neighbor: IndexWork.Neighbor, _ round: Int) throws {
      runner.show("gets beside \(neighbor.rawValue): round \(round + 1) of \(plan.longRepeats)")
      let seed = plan.seed &+ UInt64(round)
      latencies[neighbor, default: []].append(try PacedGets(address, documents, seed: seed).run(for: plan.turn))
    }

    for round in 0..<plan.longRepeats {
      try measure(.none, round)
      try during(BackgroundWork(threads: Self.findingConnections) { try Self.find(address, while: $0) }) {
        try measure(.finds, round)
      }
    }
    runner.show("indexing \(documents.count) documents")
    try server.buildIndexes(IndexWork.indexes)
    let large = makeLargeDocuments(after: documents.count)
    for round in 0..<plan.longRepeats {
      try measure(.noneWithIndexes, round)
      try during(BackgroundWork(threads: 1) { try Self.put(large, address, while: $0) }) {
        try measure(.largePuts, round)
      }
    }
    return IndexWork.Neighbor.allCases.flatMap { neighbor in
      let (work, tallies) = (IndexWork.get(neighbor, documents: documents.count), latencies[neighbor] ?? [])
      return [
        work.figure(.p50, tallies.map { $0.microseconds(50) }), work.figure(.p99, tallies.map { $0.microseconds(99) }),
      ]
    }
  }

  /// Stops the work after `body`, whether that throws or not.
  private func during(_ work: BackgroundWork, _ body: () throws -> Void) throws {
    do { try body() } catch {
      _ = try? work.stop()
      throw error
    }
    try work.stop()
  }

  private static func find(_ server: DocumentAddress, while goesOn: () -> Bool) throws {
    let connection = try DocumentConnection(to: server)
    let request = connection.findRequest(FindText(selector: selector))
    while goesOn() { _ = try connection.find(request, count: 1) }
  }

  private static func put(_ documents: [NumberedDocument], _ server: DocumentAddress, while goesOn: () -> Bool) throws {
    let connection = try DocumentConnection(to: server)
    var next = 0
    while goesOn() {
      try connection.put(documents[next...next])
      next = (next + 1) % documents.count
    }
  }

  /// Returns documents about persons with many orders, almost as large as a frame.
  private func makeLargeDocuments(after first: Int) -> [NumberedDocument] {
    var samples = DocumentSamples(seed: plan.seed)
    let orders = (0..<64).map { samples.order($0) }.joined(separator: ",").utf8
    let blocks = Self.largeByteCount / (orders.count + 1) - 1
    return (first..<first + Self.largeCount).map { number in
      let start = #"{"name":"mike","age":34,"docNumber":\#(number),"pet":"cat","orders":["#
      var text = Array(start.utf8)
      for block in 0..<blocks {
        if block > 0 { text.append(UInt8(ascii: ",")) }
        text += orders
      }
      return NumberedDocument(number, text + Array("]}".utf8))
    }
  }
}
