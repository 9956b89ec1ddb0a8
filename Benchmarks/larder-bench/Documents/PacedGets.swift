import Glibc

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

  /// Measures latencies. A get that could not be sent in time, because the one before took so long, counts from when it
  /// should have been sent.
  func run(for duration: Duration) throws -> Tally {
    let connection = try DocumentConnection(to: server)
    var random = Random(seed: seed)
    var tally = Tally()
    let interval = 1_000_000_000 / UInt64(Self.rate)
    var next = Clocks.now() + interval
    for _ in 0..<max(1, Int(duration.seconds * Double(Self.rate))) {
      let document = documents[Int(random.below(UInt64(documents.count)))]
      let request = connection.getRequest(document)
      let isLate = Clocks.now() > next
      if !isLate { sleep(until: next) }
      let start = isLate ? next : Clocks.now()
      try connection.get(request, of: document)
      tally.record(since: start, now: Clocks.now())
      next += interval
    }
    tally.flush()
    return tally
  }

  /// - Parameter time: A time of `Clocks.now`.
  private func sleep(until time: UInt64) {
    var time = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
    while unsafe clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
  }
}
