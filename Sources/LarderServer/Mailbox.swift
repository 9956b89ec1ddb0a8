import Platform
import Storage

/// What other threads ask of a worker. Posting wakes the worker; reading is the worker's.
final class Mailbox: Sendable {
  /// The poll's token for the mailbox's descriptor.
  static let token = UInt64.max

  fileprivate let wakeup: Wakeup
  private let contents = Lock(Contents())

  private struct Contents: ~Copyable {
    var arrivals: [Int32] = []
    var drains = false
  }

  init() throws(SystemError) {
    wakeup = try Wakeup()
  }

  deinit {
    for number in contents.withLock({ $0.arrivals }) { _ = Descriptor(owning: number) }
  }

  /// Readable while something was posted and not read.
  var descriptor: Int32 { wakeup.descriptor.number }

  /// Hands over a connected socket.
  func post(_ socket: consuming Descriptor) {
    let number = socket.release()
    contents.withLock { $0.arrivals.append(number) }
    wakeup.signal()
  }

  /// Asks for an orderly end.
  func postDrain() {
    contents.withLock { $0.drains = true }
    wakeup.signal()
  }

  /// Takes what was posted: the numbers of sockets that the caller now owns, and whether the end was asked for.
  func read() -> (arrivals: [Int32], drains: Bool) {
    wakeup.clear()
    return contents.withLock { contents in
      defer { contents.arrivals = [] }
      return (contents.arrivals, contents.drains)
    }
  }
}

extension Mailbox: JournalWaiter {
  func journalHasMoved() { wakeup.signal() }
}
