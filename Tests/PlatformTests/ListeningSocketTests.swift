import Foundation
import Glibc
import Platform
import TestSupport
import Testing

struct ListeningSocketTests {
  private let directory: TemporaryFolder

  init() throws { directory = try TemporaryFolder() }

  private func address(_ name: String) -> Address { .unix(path: directory.file(name)) }

  private func isRefused(_ address: Address, because reason: String) -> Bool {
    do throws(ListenError) {
      _ = try ListeningSocket.open(address)
      return false
    } catch {
      return error.address == address && error.description.contains(reason)
    }
  }

  @Test func `all addresses of both families can have the same port`() throws {
    let first = try ListeningSocket.open(.tcp(host: "::", port: 0))
    guard case .tcp(_, let port) = first.address else { return }
    #expect((try? ListeningSocket.open(.tcp(host: "0.0.0.0", port: port))) != nil)
  }

  @Test func `a client and its accepted connection exchange bytes`() throws {
    for address in [address("s"), .tcp(host: "127.0.0.1", port: 0)] {
      let listener = try ListeningSocket.open(address)
      let client = try Socket.connect(to: listener.address).descriptor()
      let server = try accept(from: listener)
      #expect(Socket.connectionError(of: client) == nil)
      unsafe "ping".withUTF8Bytes { #expect(unsafe client.send($0) == .moved(4)) }
      try wait(.reading, on: server)
      var room = [UInt8](repeating: 0, count: 16)
      unsafe room.withUnsafeMutableBytes { #expect(unsafe server.receive(into: $0) == .moved(4)) }
      unsafe room.withUnsafeMutableBytes { #expect(unsafe server.receive(into: $0) == .wouldBlock) }
      server.shutdownSending()
      try wait(.reading, on: client)
      unsafe room.withUnsafeMutableBytes { #expect(unsafe client.receive(into: $0) == .moved(0)) }
    }
  }

  @Test func `accepting from an empty queue returns nothing`() throws {
    let listener = try ListeningSocket.open(address("s"))
    let accepted = try listener.accept() == nil
    #expect(accepted)
  }

  @Test func `port 0 is reported as the port that was bound`() throws {
    let listener = try ListeningSocket.open(.tcp(host: "127.0.0.1", port: 0))
    guard case .tcp("127.0.0.1", let port) = listener.address else { throw TestFailure() }
    #expect(port > 0)
    #expect(isRefused(listener.address, because: "bind"))
  }

  @Test func `a socket file without a listener is replaced`() throws {
    let path = directory.file("s")
    let stale = BareSocket.bindUnix(path)
    #expect(stale >= 0)
    close(stale)
    #expect(directory.has("s"))
    let listener = try ListeningSocket.open(address("s"))
    let client = try Socket.connect(to: listener.address).descriptor()
    #expect(Socket.connectionError(of: client) == nil)
  }

  @Test func `a socket with a listener is left alone`() throws {
    let first = try ListeningSocket.open(address("s"))
    #expect(isRefused(address("s"), because: "another process listens there"))
    let client = try Socket.connect(to: first.address).descriptor()
    #expect(Socket.connectionError(of: client) == nil)
    #expect(directory.has("s"))
  }

  @Test func `a file, a directory and a link are never taken for a stale socket`() throws {
    let manager = FileManager.default
    _ = manager.createFile(atPath: directory.file("file"), contents: Data("precious".utf8))
    try manager.createDirectory(atPath: directory.file("directory"), withIntermediateDirectories: false)
    try manager.createSymbolicLink(atPath: directory.file("link"), withDestinationPath: directory.file("nowhere"))
    for name in ["file", "directory", "link"] {
      #expect(isRefused(address(name), because: "there is a file that is not a socket"))
      #expect(directory.has(name))
    }
    #expect(manager.contents(atPath: directory.file("file")) == Data("precious".utf8))
    #expect(!directory.has("nowhere"))
  }

  @Test func `listening in a missing directory fails with the system's reason`() {
    #expect(isRefused(address("nowhere/s"), because: "No such file or directory"))
  }

  @Test(arguments: [0o600, 0o660, 0o666] as [UInt32])
  func `the socket's file has the requested mode`(_ mode: UInt32) throws {
    let listener = try ListeningSocket.open(address("s"), access: .init(mode: mode, owner: getuid(), group: getgid()))
    #expect(directory.mode("s") == mode)
    _ = consume listener
  }

  @Test func `closing a socket removes its file`() throws {
    let listener = try ListeningSocket.open(address("s"))
    #expect(directory.has("s"))
    _ = consume listener
    #expect(!directory.has("s"))
  }

  @Test func `closing a socket leaves a file that has replaced its own`() throws {
    let listener = try ListeningSocket.open(address("s"))
    _ = unsafe unlink(directory.file("s"))
    let other = BareSocket.bindUnix(directory.file("s"))
    defer { close(other) }
    _ = consume listener
    #expect(directory.has("s"))
  }

  @Test func `of several sockets opened at the same path, one succeeds`() async {
    let address = address("s")
    let wins = await withTaskGroup { group in
      for _ in 0..<16 {
        group.addTask { () -> Bool in
          guard let listener = try? ListeningSocket.open(address) else { return false }
          // Long enough for all others to try.
          usleep(200_000)
          _ = consume listener
          return true
        }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(wins >= 1)
    #expect(!directory.has("s"))
  }
}
