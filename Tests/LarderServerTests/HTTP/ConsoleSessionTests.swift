import Platform
import Storage
import TestSupport
import Testing
import Tokens

@testable import LarderServer

extension ServerTests {
  /// The links to the console and the sessions that they begin.
  struct ConsoleSessionTests {
    private func owner(_ listener: Int = 0) -> ConsoleSession.Owner {
      ConsoleSession.Owner(identity: ClientIdentity(), listener: listener, peer: .process(id: 1, user: 2))
    }

    @Test func `a link begins one session, which ends when it is told to`() throws {
      let sessions = ConsoleSessions()
      let link = sessions.makeLink(for: owner(3))
      let token = try #require(sessions.open(link))
      #expect(sessions.open(link) == nil && sessions.open(token) == nil && sessions.session(of: link) == nil)
      let session = try #require(sessions.session(of: token))
      #expect(session.owner.listener == 3 && !session.isOver(now: session.end - 1) && session.isOver(now: session.end))
      sessions.end(token)
      #expect(sessions.session(of: token) == nil && session.isOver(now: 0))
    }

    @Test func `links and sessions have limits`() throws {
      let sessions = ConsoleSessions()
      let links = (0..<2_000).map { _ in sessions.makeLink(for: owner()) }
      let tokens = links.compactMap(sessions.open)
      #expect(tokens.count == 1_024)
      let more = sessions.makeLink(for: owner())
      #expect(sessions.open(more) != nil)
      #expect(tokens.count { sessions.session(of: $0) != nil } == 1_023)
    }
  }
}
