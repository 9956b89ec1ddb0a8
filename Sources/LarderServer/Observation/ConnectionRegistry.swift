import Platform
import Wire

/// The figures of all connections that are open, of all workers. From any thread.
final class ConnectionRegistry: Sendable {
  /// How many connections are told of at once.
  static let mostTold = 256

  private struct Contents {
    var open: [UInt64: ConnectionFigures] = [:]
    var last: UInt64 = 0
    var ratesNoted = monotonicMilliseconds()
  }

  private let contents = Lock(Contents())

  func add(_ peer: Peer, now: UInt64) -> ConnectionFigures {
    contents.withLock { contents in
      contents.last += 1
      let figures = ConnectionFigures(number: contents.last, peer, opened: now)
      contents.open[contents.last] = figures
      return figures
    }
  }

  func remove(_ figures: ConnectionFigures) {
    contents.withLock { _ = $0.open.removeValue(forKey: figures.number) }
  }

  /// Notes how many requests a second there were since the last time.
  func noteRates(now: UInt64) {
    let (all, passed) = contents.withLock { contents in
      defer { contents.ratesNoted = now }
      return (Array(contents.open.values), now - min(now, contents.ratesNoted))
    }
    for figures in all { figures.noteRate(milliseconds: passed) }
  }

  /// Those with the most requests a second, and then with the most requests, first.
  func busiest(_ count: Int) -> [ConnectionFigures] {
    let all = contents.withLock { Array($0.open.values) }
      .map { (rate: $0.rate.load(ordering: .relaxed), requests: $0.requests.load(ordering: .relaxed), figures: $0) }
    return all.sorted { ($0.rate, $0.requests, $1.figures.number) > ($1.rate, $1.requests, $0.figures.number) }
      .prefix(count).map(\.figures)
  }
}
