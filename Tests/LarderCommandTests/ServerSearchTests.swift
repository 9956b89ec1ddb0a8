import Foundation
import Platform
import Testing

@testable import larder

@Suite struct `The search for a server` {
  @Test func `the search for a server finds the first socket that accepts a connection`() throws {
    let folder = try TemporaryFolder()
    let addresses = try (0..<3).map { try Address("unix:\(folder.path)/\($0).sock") }
    // The first has a file, but no server.
    _ = try ListeningSocket.open(addresses[0], removesFile: false)
    let second = try ListeningSocket.open(addresses[1])
    let third = try ListeningSocket.open(addresses[2])
    #expect(try ServerSearch.find(among: addresses) == addresses[1])
    #expect(try ServerSearch.find(among: addresses.reversed()) == addresses[2])
    withExtendedLifetime(second) {}
    withExtendedLifetime(third) {}
  }

  @Test func `the search for a server includes the socket of the packaged service`() {
    let paths = ServerSearch.candidates.map(\.description)
    #expect(paths.suffix(2) == ["unix:/run/larder/larder.sock", "unix:/run/larder.sock"])
    #expect(ServerSearch.candidates.contains(.default))
  }

  @Test func `the search for a server begins in the user's runtime directory`() throws {
    let server = try RunningServer()
    let folder = String(server.address.dropFirst("unix:".count).dropLast("/larder.sock".count))
    let count = ["count", "items"]
    #expect(try Command.larder(count, environment: ["XDG_RUNTIME_DIR": folder]).text == "0\n")
    #expect(
      try Command.larder(count, input: [], environment: ["XDG_RUNTIME_DIR": "/x", "LARDER_SERVER": server.address])
        .text == "0\n")
  }

  @Test func `a search without a server names the sockets it tried`() throws {
    let folder = try TemporaryFolder()
    let address = try Address("unix:\(folder.path)/none.sock")
    do {
      _ = try ServerSearch.find(among: [address, Address("unix:\(folder.path)/other.sock")])
      Issue.record("it found a server")
    } catch let failure as CommandFailure {
      #expect(failure.status == .unreachable)
      for part in ["none.sock (", "other.sock (", "is larderd running?", "--server or LARDER_SERVER"] {
        #expect(failure.message.contains(part), "\(failure.message)")
      }
    }
  }
}
