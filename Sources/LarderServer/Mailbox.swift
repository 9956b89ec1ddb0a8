import Platform
import Storage

/// What other threads ask of a worker. Posting wakes the worker; reading is the worker's.
final class Mailbox: Sendable {
  /// The poll's token for the mailbox's descriptor.
  static let token = UInt64.max

  fileprivate let wakeup: Wakeup
  private let contents = Lock(Contents())

  /// What was posted.
  struct Contents {
    /// The numbers of sockets that whoever reads now owns, each with that of the socket that it came by.
    var arrivals: [(socket: Int32, listener: Int)] = []
    var probes: [@Sendable () -> Void] = []
    var hasNewLimits = false
    /// Whether the end was asked for, now or before.
    var drains = false
    /// Stores with changes that somebody waits for.
    var changed: [ObjectIdentifier] = []
  }

  init() throws(SystemError) {
    wakeup = try Wakeup()
  }

  deinit {
    for arrival in contents.withLock({ $0.arrivals }) { _ = Descriptor(owning: arrival.socket) }
  }

  /// Readable while something was posted and not read.
  var descriptor: Int32 { wakeup.descriptor.number }

  /// Hands over a connected socket.
  func post(_ socket: consuming Descriptor, from listener: Int) {
    let number = socket.release()
    contents.withLock { $0.arrivals.append((number, listener)) }
    wakeup.signal()
  }

  /// Asks for an answer.
  func post(_ probe: @escaping @Sendable () -> Void) {
    contents.withLock { $0.probes.append(probe) }
    wakeup.signal()
  }

  /// Tells that the server's limits or rules have changed.
  func postNewLimits() {
    contents.withLock { $0.hasNewLimits = true }
    wakeup.signal()
  }

  /// Asks for an orderly end.
  func postDrain() {
    contents.withLock { $0.drains = true }
    wakeup.signal()
  }

  /// Tells of changes in a store.
  func post(changed store: ObjectIdentifier) {
    contents.withLock { contents in
      if !contents.changed.contains(store) { contents.changed.append(store) }
    }
    wakeup.signal()
  }

  /// Takes what was posted.
  func read() -> Contents {
    wakeup.clear()
    return contents.withLock { contents in
      let posted = contents
      contents = Contents(drains: posted.drains)
      return posted
    }
  }
}

extension Mailbox: DurabilityWaiter {
  func durabilityDidAdvance() { wakeup.signal() }
}
