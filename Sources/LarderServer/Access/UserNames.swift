import Dispatch
import Platform

/// What people call those who are refused something.
///
/// Workers ask for names, and a system whose users are kept on another machine may take for ever to tell one. So it is asked on another thread,
/// once for each user and for no more users than there can be names here; nobody waits long for it, and while it is late nobody waits at all.
final class UserNames: Sendable {
  static let most = 1_024
  private static let patience = DispatchTimeInterval.milliseconds(100)

  private struct State {
    var names: [UInt32: String?] = [:]
    var isLate = false
  }

  private let state = Lock(State())
  private let queue = DispatchQueue(label: "larder.user-names")
  private let find: @Sendable (UInt32) -> String?

  init(_ find: @escaping @Sendable (UInt32) -> String? = userName(ofID:)) { self.find = find }

  /// - Parameter peer: nil for a client of TCP.
  func client(_ peer: Credentials?) -> String {
    guard let peer else { return "a client of TCP" }
    guard let name = name(of: peer.user) else { return "uid \(peer.user)" }
    return "user \(name) (uid \(peer.user))"
  }

  /// Nil for a user without a name, and for one whose name the system has not told by now.
  private func name(of user: UInt32) -> String? {
    let (known, asks) = state.withLock { state in
      (state.names[user], state.names[user] == nil && !state.isLate && state.names.count < Self.most)
    }
    guard asks else { return known ?? nil }
    let answered = DispatchSemaphore(value: 0)
    queue.async { [self] in
      ask(user)
      answered.signal()
    }
    let isInTime = answered.wait(timeout: .now() + Self.patience) == .success
    return state.withLock { state in
      // Unless the answer came just now.
      if !isInTime, state.names[user] == nil { state.isLate = true }
      return state.names[user] ?? nil
    }
  }

  private func ask(_ user: UInt32) {
    // Somebody else may have asked while this waited for its turn.
    let isKnown = state.withLock { $0.names[user] != nil }
    let name = isKnown ? nil : find(user)
    state.withLock { state in
      if !isKnown { state.names[user] = .some(name) }
      state.isLate = false
    }
  }
}
