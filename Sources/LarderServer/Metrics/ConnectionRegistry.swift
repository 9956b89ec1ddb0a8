import Platform
import Synchronization
import Wire

/// The figures of all open connections of all workers. Used by any thread; what changes is behind a lock.
final class ConnectionRegistry: Sendable {
  /// The number of connections in one report.
  static let maxReported = 256

  private struct Contents {
    var open: [UInt64: ConnectionFigures] = [:]
    var lastNumber: UInt64 = 0
    var ratesUpdated = monotonicMilliseconds()
  }

  private let contents = Lock(Contents())

  func add(_ peer: Peer, now: UInt64) -> ConnectionFigures {
    contents.withLock { contents in
      contents.lastNumber += 1
      let figures = ConnectionFigures(number: contents.lastNumber, peer, opened: now)
      contents.open[contents.lastNumber] = figures
      return figures
    }
  }

  func remove(_ figures: ConnectionFigures) {
    contents.withLock { _ = $0.open.removeValue(forKey: figures.number) }
  }

  /// The users of the clients on Unix sockets.
  var users: Set<UInt32> {
    let all = contents.withLock { Array($0.open.values) }
    return Set(all.compactMap { if case .process(_, let user) = $0.peer { user } else { nil } })
  }

  /// Updates the requests per second of all connections since the last call.
  func updateRates(now: UInt64) {
    let (all, elapsed) = contents.withLock { contents in
      defer { contents.ratesUpdated = now }
      return (Array(contents.open.values), now - min(now, contents.ratesUpdated))
    }
    for figures in all { figures.updateRate(milliseconds: elapsed) }
  }

  /// The connections with the most requests per second, and then with the most requests, first.
  func busiest(_ count: Int) -> [ConnectionFigures] {
    let all = contents.withLock { Array($0.open.values) }
      .map { (rate: $0.rate.load(ordering: .relaxed), requests: $0.requests.load(ordering: .relaxed), figures: $0) }
    return all.sorted { ($0.rate, $0.requests, $1.figures.number) > ($1.rate, $1.requests, $0.figures.number) }
      .prefix(count).map(\.figures)
  }
}

/// What is reported of one connection. Its worker counts, without a lock, and any thread reads.
final class ConnectionFigures: Sendable {
  /// The connection's number among all that the server ever had.
  let number: UInt64
  let peer: Peer
  /// When it was opened, in milliseconds of the server's clock.
  fileprivate let opened: UInt64

  let requests = Atomic<UInt64>(0)
  let receivedBytes = Atomic<UInt64>(0)
  let sentBytes = Atomic<UInt64>(0)
  /// The size of the replies that the client has left unread.
  let waitingBytes = Atomic<UInt64>(0)

  /// Requests per second when that was last updated, and all requests until then. Only `updateRate` changes them.
  let rate = Atomic<UInt64>(0)
  private let previousRequests = Atomic<UInt64>(0)
  private let clientName = Lock("")

  init(number: UInt64, _ peer: Peer, opened: UInt64) {
    self.number = number
    self.peer = peer
    self.opened = opened
  }

  /// The client's name for itself.
  var name: String { clientName.withLock { $0 } }

  /// Sets the client's name, truncated to what a reply has room for: a name that was not UTF-8 has grown when it was
  /// converted.
  func setClientName(_ name: String) {
    var name = name
    while name.utf8.count > ClientHello.maxNameSize { name.unicodeScalars.removeLast() }
    clientName.withLock { $0 = name }
  }

  func updateRate(milliseconds: UInt64) {
    let count = requests.load(ordering: .relaxed)
    let previous = previousRequests.load(ordering: .relaxed)
    rate.store((count - previous) * 1_000 / max(1, milliseconds), ordering: .relaxed)
    previousRequests.store(count, ordering: .relaxed)
  }
}

extension Atomic where Value == UInt64 {
  /// Adds without locking the bus: there is only one writer.
  @inline(__always)
  borrowing func increment(by amount: Int) {
    store(load(ordering: .relaxed) &+ UInt64(truncatingIfNeeded: amount), ordering: .relaxed)
  }
}

extension ConnectionStatistics {
  /// - Parameter commands: the commands of processes that have been looked up already.
  init(_ figures: ConnectionFigures, now: UInt64, _ commands: inout [Int32: String]) {
    var (process, user, address, command): (Int32, UInt32, String, String) = (0, .max, "", "")
    switch figures.peer {
    case .process(let id, let owner):
      (process, user) = (id, owner)
      command = commands[id] ?? commandName(ofProcess: id) ?? ""
      commands[id] = command
    case .address(let text): address = text
    case .unknown: break
    }
    self.init(
      number: figures.number, openMilliseconds: now - min(now, figures.opened),
      requests: figures.requests.load(ordering: .relaxed), requestsPerSecond: figures.rate.load(ordering: .relaxed),
      receivedBytes: figures.receivedBytes.load(ordering: .relaxed),
      sentBytes: figures.sentBytes.load(ordering: .relaxed),
      waitingBytes: figures.waitingBytes.load(ordering: .relaxed),
      process: UInt32(clamping: process), user: user, address: address, command: command, client: figures.name)
  }
}
