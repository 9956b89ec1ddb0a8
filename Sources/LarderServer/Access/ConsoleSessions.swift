import Platform
import Storage
import Synchronization
import Tokens

/// The sessions of consoles in browsers. A client makes a link, which works once and soon, and the browser that opens it
/// has the client's rights until the session ends. Used by any thread.
final class ConsoleSessions: Sendable {
  /// How long a link works, in milliseconds.
  static let linkLifetime: UInt64 = 60_000
  /// How long a session lasts, in milliseconds.
  static let lifetime: UInt64 = 12 * 3_600_000
  /// The maximum number of links, and of sessions. Beyond it, the one that would end first ends.
  private static let maxCount = 1_024

  /// A link that was not opened.
  private struct Link {
    let owner: ConsoleSession.Owner
    let end: UInt64
  }

  private struct Contents {
    var links: [TokenDigest: Link] = [:]
    var sessions: [TokenDigest: ConsoleSession] = [:]
  }

  private let contents = Lock(Contents())

  /// Returns the secret of a new link.
  func makeLink(for owner: ConsoleSession.Owner) -> AccessToken {
    let (link, now) = (AccessToken(), monotonicMilliseconds())
    contents.withLock { contents in
      _ = Self.makeRoom(in: &contents.links, now: now, end: \.end)
      contents.links[link.digest] = Link(owner: owner, end: now + Self.linkLifetime)
    }
    return link
  }

  /// Begins the session of a link, which doesn't work any more.
  /// - Parameter isPermitted: Whether the client that made the link may still have a session.
  /// - Returns: The token of the session; nil if the link doesn't work.
  func open(_ link: AccessToken, isPermitted: (ConsoleSession.Owner) -> Bool) -> AccessToken? {
    let (token, now) = (AccessToken(), monotonicMilliseconds())
    return contents.withLock { contents in
      guard let link = contents.links.removeValue(forKey: link.digest), link.end > now, isPermitted(link.owner) else {
        return nil
      }
      Self.makeRoom(in: &contents.sessions, now: now, end: \.end)?.finish()
      contents.sessions[token.digest] = ConsoleSession(owner: link.owner, end: now + Self.lifetime)
      return token
    }
  }

  /// Removes what has ended and, if no more may be added, the one that would end first.
  /// - Returns: The latter.
  private static func makeRoom<Element>(
    in elements: inout [TokenDigest: Element], now: UInt64, end: (Element) -> UInt64
  ) -> Element? {
    elements = elements.filter { end($0.value) > now }
    guard elements.count >= maxCount, let first = elements.min(by: { end($0.value) < end($1.value) }) else {
      return nil
    }
    return elements.removeValue(forKey: first.key)
  }

  /// Returns the session of a token; nil if there is none, or it is over.
  func session(of token: AccessToken) -> ConsoleSession? {
    let session = contents.withLock { $0.sessions[token.digest] }
    return session?.isOver(now: monotonicMilliseconds()) == false ? session : nil
  }

  /// Ends the links and sessions of some clients.
  func end(where isRevoked: (ConsoleSession.Owner) -> Bool) {
    contents.withLock { contents in
      contents.links = contents.links.filter { !isRevoked($0.value.owner) }
      for (token, session) in contents.sessions where isRevoked(session.owner) {
        session.finish()
        contents.sessions[token] = nil
      }
    }
  }

  /// Ends the session of a token.
  func end(_ token: AccessToken) { contents.withLock { $0.sessions.removeValue(forKey: token.digest) }?.finish() }
}

/// The session of a console.
final class ConsoleSession: Sendable {
  /// Whose rights it has, which are those on the listener that the link was made on.
  struct Owner: Sendable {
    let identity: ClientIdentity
    let listener: Int
    let peer: Peer
  }

  let owner: Owner
  /// When it ends, in milliseconds.
  let end: UInt64
  private let isFinished = Atomic(false)

  fileprivate init(owner: Owner, end: UInt64) { (self.owner, self.end) = (owner, end) }

  /// Ends it before its time.
  fileprivate func finish() { isFinished.store(true, ordering: .releasing) }

  func isOver(now: UInt64) -> Bool { isFinished.load(ordering: .acquiring) || now >= end }
}
