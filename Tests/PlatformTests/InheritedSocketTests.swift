import Glibc
import Platform
import TestSupport
import Testing

/// Descriptors from another process, as a service manager passes them.
struct InheritedSocketTests {
  private let directory: TemporaryFolder

  init() throws { directory = try TemporaryFolder() }

  /// Returns a second descriptor of a socket, without an owner.
  private func inherit(_ listener: borrowing ListeningSocket) -> InheritedSocket {
    InheritedSocket(name: "test", descriptor: dup(listener.descriptor.number))
  }

  private func refusal(of descriptor: Int32) -> String? {
    do throws(InheritedSocketError) {
      _ = try ListeningSocket.adopt(InheritedSocket(name: "test", descriptor: descriptor))
      return nil
    } catch {
      return error.description
    }
  }

  @Test func `an inherited socket keeps its address, and closing it leaves its file`() throws {
    for address in [Address.unix(path: directory.file("s")), .tcp(host: "127.0.0.1", port: 0)] {
      let first = try ListeningSocket.open(address)
      let known = first.address
      let adopted = try ListeningSocket.adopt(inherit(first))
      #expect(adopted.address == known)
      let client = try Socket.connect(to: known).descriptor()
      let server = try accept(from: adopted)
      #expect(Socket.connectionError(of: client) == nil)
      server.shutdownSending()
      if case .unix = address {
        _ = consume adopted
        #expect(directory.has("s"))
      }
    }
  }

  @Test func `an inherited socket is non-blocking, and child processes don't inherit it`() throws {
    let first = try ListeningSocket.open(.unix(path: directory.file("s")))
    let inherited = inherit(first)
    _ = fcntl(inherited.descriptor, F_SETFL, fcntl(inherited.descriptor, F_GETFL) & ~O_NONBLOCK)
    let adopted = try ListeningSocket.adopt(inherited)
    let accepted = try adopted.accept() == nil
    #expect(accepted)
    #expect(fcntl(adopted.descriptor.number, F_GETFD) == FD_CLOEXEC)
  }

  @Test func `a descriptor that isn't a listening stream socket is rejected with a reason and stays open`() throws {
    let bound = BareSocket.bindUnix(directory.file("bound"))
    let datagram = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    let file = unsafe open("/dev/null", O_RDONLY)
    defer { for number in [bound, datagram, file] { close(number) } }
    for (descriptor, reason) in [
      (bound, "it doesn't listen"), (datagram, "it is not a stream socket"), (file, "Socket operation on non-socket"),
      (9_999, "Bad file descriptor"),
    ] {
      let reported = refusal(of: descriptor) ?? "nothing"
      #expect(reported.contains(reason) && reported.contains("\(descriptor) (\"test\")"), "\(reported)")
    }
    #expect(fcntl(bound, F_GETFD) >= 0)
  }

  /// Returns a second descriptor under the name by which the socket is preserved.
  private func preserve(_ listener: borrowing ListeningSocket) -> InheritedSocket {
    InheritedSocket(name: listener.preservedName, descriptor: dup(listener.descriptor.number))
  }

  @Test func `a preserved socket is recognized by its address and accepts connections`() throws {
    for address in [Address.unix(path: directory.file("s")), .tcp(host: "localhost", port: 0)] {
      let first = try ListeningSocket.open(address, removesFile: false)
      let (known, preserved) = (first.address, preserve(first))
      _ = consume first
      #expect(ListeningSocket.isPreserved(preserved, at: known))
      for other in [Address.unix(path: directory.file("t")), .tcp(host: "127.0.0.1", port: 1)] {
        #expect(!ListeningSocket.isPreserved(preserved, at: other))
      }
      #expect(preserved.name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") })
      let resumed = try ListeningSocket.resume(preserved, at: known, access: .init(mode: 0o600))
      let name = resumed.preservedName
      #expect(resumed.address == known && name == preserved.name)
      let client = try Socket.connect(to: known).descriptor()
      _ = try accept(from: resumed)
      #expect(Socket.connectionError(of: client) == nil)
      ListeningSocket.discard(preserve(resumed))
      #expect(!directory.has("s"))
    }
  }

  @Test func `a resumed socket gets new permissions`() throws {
    let address = Address.unix(path: directory.file("s"))
    let first = try ListeningSocket.open(address, access: .init(mode: 0o666), removesFile: false)
    let preserved = preserve(first)
    _ = consume first
    let fresh = try ListeningSocket.open(.unix(path: directory.file("fresh")))
    let resumed = try ListeningSocket.resume(preserved, at: address)
    #expect(resumed.address == address && fresh.address != address)
    #expect(directory.mode("s") == directory.mode("fresh"))
  }

  @Test func `resuming a socket doesn't change a file that a link at its path points to`() throws {
    let first = try ListeningSocket.open(.unix(path: directory.file("s")))
    let precious = unsafe open(directory.file("precious"), O_WRONLY | O_CREAT, 0o600)
    close(precious)
    _ = unsafe symlink(directory.file("precious"), directory.file("link"))
    #expect(throws: ListenError.self) {
      _ = try ListeningSocket.resume(
        preserve(first), at: .unix(path: directory.file("link")), access: .init(mode: 0o666))
    }
    #expect(directory.mode("precious") == 0o600)
  }

  @Test func `a preserved socket isn't taken for one whose file is at its path now`() throws {
    let address = Address.unix(path: directory.file("s"))
    let first = try ListeningSocket.open(address, removesFile: false)
    let preserved = preserve(first)
    _ = unsafe rename(directory.file("s"), directory.file("away"))
    #expect(!ListeningSocket.isPreserved(preserved, at: address))
    let second = try ListeningSocket.open(address)
    #expect(!ListeningSocket.isPreserved(preserved, at: address))
    ListeningSocket.discard(preserved)
    #expect(directory.has("s") && second.address == address)
  }
}
