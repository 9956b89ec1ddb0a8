/// Gets of random documents at a fixed rate over one connection, one at a time.
struct PacedGets {
  private let server: DocumentAddress
  private let documents: [NumberedDocument]
  private let seed: UInt64

  /// Gets a second.
  static let rate = 1_000

  init(_ server: DocumentAddress, _ documents: [NumberedDocument], seed: UInt64) {
    self.server = server
    self.documents = documents
    self.seed = seed
  }

  /// Measures latencies.
  func run(for duration: Duration) throws -> Tally {
    let connection = try DocumentConnection(to: server)
    var random = Random(seed: seed)
    var tally = Tally()
    var times = PacedTimes(rate: Self.rate)
    for _ in 0..<max(1, Int(duration.seconds * Double(Self.rate))) {
      let document = documents[Int(random.below(UInt64(documents.count)))]
      let request = connection.getRequest(document)
      let start = times.wait()
      try connection.get(request, of: document)
      tally.record(since: start, now: Clocks.now())
    }
    tally.flush()
    return tally
  }
}
