import Dispatch
import Platform

/// The names of users, for messages about refusals.
///
/// Workers look names up, and a system whose users are kept on another machine may never answer. So a thread of its own
/// asks the system, once per user and for a limited number of users. A worker waits 100 ms at most, and not at all
/// while an earlier answer is overdue.
///
/// Used by any thread; what changes is behind a lock.
final class UserNames: Sendable {
  private static let maxCount = 1_024
  private static let patience = DispatchTimeInterval.milliseconds(100)

  private struct State {
    /// The names that are known; nil for users without a name.
    var names: [UInt32: String?] = [:]
    var isOverdue = false
  }

  private let state = Lock(State())
  private let queue = DispatchQueue(label: "larder.user-names")
  private let lookUp: @Sendable (UInt32) -> String?

  init(_ lookUp: @escaping @Sendable (UInt32) -> String? = userName(ofID:)) { self.lookUp = lookUp }

  /// Describes a client.
  /// - Parameter peer: nil for a TCP client.
  func client(_ peer: Credentials?) -> String {
    guard let peer else { return "a TCP client" }
    guard let name = name(of: peer.user) else { return "uid \(peer.user)" }
    return "user \(name) (uid \(peer.user))"
  }

  /// The name of a user; nil if there is none, or the system has not answered in time.
  private func name(of user: UInt32) -> String? {
    let (known, mustAsk) = state.withLock { state in
      (state.names[user], state.names[user] == nil && !state.isOverdue && state.names.count < Self.maxCount)
    }
    guard mustAsk else { return known ?? nil }
    let answered = DispatchSemaphore(value: 0)
    queue.async { [self] in
      ask(user)
      answered.signal()
    }
    let isInTime = answered.wait(timeout: .now() + Self.patience) == .success
    return state.withLock { state in
      // The answer may have arrived just now.
      if !isInTime, state.names[user] == nil { state.isOverdue = true }
      return state.names[user] ?? nil
    }
  }

  private func ask(_ user: UInt32) {
    // Another worker may have asked while this waited in the queue.
    let isKnown = state.withLock { $0.names[user] != nil }
    let name = isKnown ? nil : lookUp(user)
    state.withLock { state in
      if !isKnown { state.names[user] = .some(name) }
      state.isOverdue = false
    }
  }
}
