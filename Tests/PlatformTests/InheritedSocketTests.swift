import Glibc
import Platform
import Testing

/// Descriptors that come from elsewhere, as a service manager passes them.
struct InheritedSocketTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A second descriptor of a socket, which nobody owns yet.
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

  @Test func `a socket that was passed is served under its own address, and its file stays`() throws {
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

  @Test func `a socket that was passed never blocks, and no child process gets it`() throws {
    let first = try ListeningSocket.open(.unix(path: directory.file("s")))
    let inherited = inherit(first)
    _ = fcntl(inherited.descriptor, F_SETFL, fcntl(inherited.descriptor, F_GETFL) & ~O_NONBLOCK)
    let adopted = try ListeningSocket.adopt(inherited)
    let accepted = try adopted.accept() == nil
    #expect(accepted)
    #expect(fcntl(adopted.descriptor.number, F_GETFD) == FD_CLOEXEC)
  }

  @Test func `what is no listening stream socket is refused with the reason, and left open`() throws {
    let bound = BareSocket.bindUnix(directory.file("bound"))
    let datagram = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    let file = unsafe open("/dev/null", O_RDONLY)
    defer { for number in [bound, datagram, file] { close(number) } }
    for (descriptor, reason) in [
      (bound, "it doesn't listen"), (datagram, "it is not a stream socket"), (file, "Socket operation on non-socket"),
      (9_999, "Bad file descriptor"),
    ] {
      let told = refusal(of: descriptor) ?? "nothing"
      #expect(told.contains(reason) && told.contains("\(descriptor) (\"test\")"), "\(told)")
    }
    #expect(fcntl(bound, F_GETFD) >= 0)
  }
}
