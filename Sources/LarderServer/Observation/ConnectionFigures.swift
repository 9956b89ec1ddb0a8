import Platform
import Synchronization
import Wire

/// What is told of a connection to those who ask which are the busiest. Its worker counts, without a lock, and whoever reports reads.
final class ConnectionFigures: Sendable {
  /// Which of all connections that the server ever had.
  let number: UInt64
  let peer: Peer
  /// In milliseconds of the server's clock.
  let opened: UInt64

  let requests = Atomic<UInt64>(0)
  let receivedBytes = Atomic<UInt64>(0)
  let sentBytes = Atomic<UInt64>(0)
  /// What waits until the client reads it.
  let waitingBytes = Atomic<UInt64>(0)

  /// Requests a second, when that was last looked at, and how many there had been then. Only `noteRate` writes them.
  let rate = Atomic<UInt64>(0)
  private let requestsBefore = Atomic<UInt64>(0)
  private let clientName = Lock("")

  init(number: UInt64, _ peer: Peer, opened: UInt64) {
    self.number = number
    self.peer = peer
    self.opened = opened
  }

  /// What the client calls itself.
  var name: String { clientName.withLock { $0 } }

  /// Keeps the name as far as a reply has room for it: what was not UTF-8 has grown when it was made so.
  func nameClient(_ name: String) {
    var name = name
    while name.utf8.count > ClientHello.maxNameSize { name.unicodeScalars.removeLast() }
    clientName.withLock { $0 = name }
  }

  func noteRate(milliseconds: UInt64) {
    let count = requests.load(ordering: .relaxed)
    let before = requestsBefore.load(ordering: .relaxed)
    rate.store((count - before) * 1_000 / max(1, milliseconds), ordering: .relaxed)
    requestsBefore.store(count, ordering: .relaxed)
  }
}

extension Atomic where Value == UInt64 {
  /// Adds without a lock: there is one writer.
  @inline(__always)
  borrowing func count(_ number: Int) {
    store(load(ordering: .relaxed) &+ UInt64(truncatingIfNeeded: number), ordering: .relaxed)
  }
}

extension BusyConnection {
  /// - Parameter commands: what processes are called, as far as that was looked up.
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
