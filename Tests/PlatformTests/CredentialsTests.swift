import Glibc
import Platform
import TestSupport
import Testing

struct CredentialsTests {
  @Test func `a Unix socket reports the client's credentials with all groups`() throws {
    let directory = try TemporaryFolder()
    let listener = try ListeningSocket.open(.unix(path: directory.file("s")))
    let client = try Socket.connect(to: listener.address).descriptor()
    let server = try accept(from: listener)
    let credentials = Socket.credentials(of: server)
    let peer = try #require(credentials)
    #expect((peer.process, peer.user, peer.group) == (getpid(), geteuid(), getegid()))
    var groups = [gid_t](repeating: 0, count: 65_536)
    let count = unsafe getgroups(Int32(groups.count), &groups)
    #expect(peer.supplementaryGroups.sorted() == groups.prefix(Int(count)).sorted())
    #expect(peer.isIn(getegid()) && !peer.isIn(.max))
    // The other end is the process that listens.
    #expect(Socket.credentials(of: client)?.user == geteuid())
  }

  @Test func `a TCP socket reports no credentials`() throws {
    let listener = try ListeningSocket.open(.tcp(host: "127.0.0.1", port: 0))
    let client = try Socket.connect(to: listener.address).descriptor()
    #expect(Socket.credentials(of: client) == nil)
  }

  @Test func `users are looked up by number and have names`() {
    #expect(userName(ofID: 0) == "root")
    #expect(userName(ofID: 4_294_900_001) == nil)
  }
}
