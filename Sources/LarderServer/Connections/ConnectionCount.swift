import Platform
import Synchronization

/// The number of connections, and of those of each user and host. Acceptors add; workers and the handshaker remove.
final class ConnectionCount: Sendable {
  private let counts = Lock(Counts())
  private let acceptedTotal = Atomic<UInt64>(0)
  private let refusedTotal = Atomic<UInt64>(0)

  private struct Counts {
    var all = 0
    var byOrigin: [Peer.Origin: Int] = [:]
  }

  /// Why a connection is refused.
  enum Refusal: Equatable {
    /// The server has too many.
    case tooMany
    /// Its user or host has too many.
    case tooManyOfOrigin
  }

  /// Counts an accepted connection.
  /// - Returns: nil, or why it is refused; it is counted as refused then.
  func add(from origin: Peer.Origin, _ limits: borrowing ServerLimits) -> Refusal? {
    acceptedTotal.add(1, ordering: .relaxed)
    let (limit, originLimit) = (limits.connections, limits.connectionsOfClient)
    let refusal: Refusal? = counts.withLock { counts in
      if counts.all >= limit { return .tooMany }
      let count = counts.byOrigin[origin, default: 0]
      if count >= originLimit { return .tooManyOfOrigin }
      counts.all += 1
      counts.byOrigin[origin] = count + 1
      return nil
    }
    if refusal != nil { refusedTotal.add(1, ordering: .relaxed) }
    return refusal
  }

  func remove(from origin: Peer.Origin) {
    counts.withLock { counts in
      counts.all -= 1
      let count = counts.byOrigin[origin, default: 1]
      counts.byOrigin[origin] = count > 1 ? count - 1 : nil
    }
  }

  var open: UInt64 { UInt64(counts.withLock { $0.all }) }
  /// All connections that were ever accepted, including those that were refused at once.
  var accepted: UInt64 { acceptedTotal.load(ordering: .relaxed) }
  var refused: UInt64 { refusedTotal.load(ordering: .relaxed) }
}
