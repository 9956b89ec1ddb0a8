import Platform

/// Something that a client may not do and asked for.
package struct Refusal: Equatable, Sendable {
  /// Nil for a client of TCP.
  package let peer: Credentials?
  /// The client, as people would name it: `user web (uid 33)`.
  package let client: String
  package let listener: Listener
  /// What it asked for, behind "may not": `write to store sessions`.
  package let action: String
}

/// What people call those who are refused something.
///
/// Asking the system for a name may take long, and workers do it. So it is asked once for each user, and for no more users than there can
/// be names here.
final class UserNames: Sendable {
  static let most = 1_024

  private let names = Lock<[UInt32: String?]>([:])

  func client(_ peer: Credentials?) -> String {
    guard let peer else { return "a client of TCP" }
    let (known, hasRoom) = names.withLock { ($0[peer.user], $0.count < Self.most) }
    guard let name = known ?? (hasRoom ? ask(peer.user) : nil) else { return "uid \(peer.user)" }
    return "user \(name) (uid \(peer.user))"
  }

  private func ask(_ user: UInt32) -> String? {
    let name = userName(ofID: user)
    names.withLock { $0[user] = .some(name) }
    return name
  }
}
