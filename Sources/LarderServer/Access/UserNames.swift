import Dispatch
import Platform

/// The names of users, for messages about refusals.
///
/// A system whose users are kept on another machine may take its time to name one, or never answer. So a thread of its
/// own asks the system, once per user and for a limited number of users. Who needs a name is called when it is known,
/// and gives up after a while. While an answer is overdue, no other user is asked for.
///
/// Used by any thread; what changes is behind a lock.
final class UserNames: Sendable {
  private static let maxCount = 1_024

  private struct State {
    /// The names that are known; nil for users without a name.
    var names: [UInt32: String?] = [:]
    var isOverdue = false
  }

  private let state = Lock(State())
  private let queue = DispatchQueue(label: "larder.user-names")
  private let lookUp: @Sendable (UInt32) -> String?

  init(_ lookUp: @escaping @Sendable (UInt32) -> String? = userName(ofID:)) { self.lookUp = lookUp }

  /// Describes a client of a Unix socket with what is known.
  func client(_ user: UInt32) -> String {
    guard let name = state.withLock({ $0.names[user] ?? nil }) else { return "uid \(user)" }
    return "user \(name) (uid \(user))"
  }

  /// Asks for the name of a user, unless it is known or can't be found out now.
  /// - Parameter answered: called when the system has answered, if it was asked.
  /// - Returns: whether the system was asked.
  func ask(for user: UInt32, _ answered: @escaping @Sendable () -> Void) -> Bool {
    let mustAsk = state.withLock { state in
      state.names[user] == nil && !state.isOverdue && state.names.count < Self.maxCount
    }
    guard mustAsk else { return false }
    queue.async { [self] in
      lookUpOnce(user)
      answered()
    }
    return true
  }

  /// Waits no longer for the name of a user.
  func giveUp(on user: UInt32) {
    state.withLock { state in
      // The answer may have arrived just now.
      if state.names[user] == nil { state.isOverdue = true }
    }
  }

  private func lookUpOnce(_ user: UInt32) {
    // Another worker may have asked while this waited in the queue.
    let isKnown = state.withLock { $0.names[user] != nil }
    let name = isKnown ? nil : lookUp(user)
    state.withLock { state in
      if !isKnown { state.names[user] = .some(name) }
      state.isOverdue = false
    }
  }
}
