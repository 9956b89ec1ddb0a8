import Glibc
import Platform
import TestSupport
import Testing

struct SocketTests {
  private let directory: TemporaryFolder

  init() throws { directory = try TemporaryFolder() }

  private func error(connectingTo address: Address) -> ConnectError? {
    do throws(ConnectError) {
      _ = try Socket.connect(to: address).descriptor()
      return nil
    } catch {
      return error
    }
  }

  @Test func `connecting to a missing path fails`() {
    let address = Address.unix(path: directory.file("nothing"))
    let error = error(connectingTo: address)
    #expect(error?.errno == ENOENT)
    #expect(error?.address == address)
    #expect(error?.description == "can't connect to \(address): connect: No such file or directory")
  }

  @Test func `a socket file without a listener refuses connections`() throws {
    let number = BareSocket.bindUnix(directory.file("s"))
    defer { close(number) }
    #expect(error(connectingTo: .unix(path: directory.file("s")))?.errno == ECONNREFUSED)
  }

  @Test func `a port without a listener refuses connections, at once or later`() throws {
    let listener = try ListeningSocket.open(.tcp(host: "127.0.0.1", port: 0))
    let address = listener.address
    _ = consume listener
    do throws(ConnectError) {
      let socket = try Socket.connect(to: address).descriptor()
      do { try wait(.writing, on: socket) } catch { Issue.record(error) }
      #expect(Socket.connectionError(of: socket)?.errno == ECONNREFUSED)
    } catch {
      #expect(error.errno == ECONNREFUSED)
    }
  }

  @Test func `the error for a host without an address names the host`() {
    let error = error(connectingTo: .tcp(host: "no such host", port: 80))
    #expect(error?.description.contains("'no such host'") == true)
    #expect(error?.errno == nil)
  }

  @Test func `sending to a peer that is gone fails without a signal`() throws {
    let listener = try ListeningSocket.open(.unix(path: directory.file("s")))
    let client = try Socket.connect(to: listener.address).descriptor()
    let accepted = try accept(from: listener)
    _ = consume accepted
    let sent = unsafe "x".withUTF8Bytes { unsafe client.send($0) }
    #expect(sent == .failed(SystemError("send", errno: EPIPE)))
  }

  @Test func `sockets are closed on exec and non-blocking`() throws {
    let listener = try ListeningSocket.open(.unix(path: directory.file("s")))
    let client = try Socket.connect(to: listener.address).descriptor()
    let server = try accept(from: listener)
    for number in [listener.descriptor.number, client.number, server.number] {
      #expect(fcntl(number, F_GETFD) & FD_CLOEXEC != 0)
      #expect(fcntl(number, F_GETFL) & O_NONBLOCK != 0)
    }
  }

  @Test func `a descriptor is closed once by its owner, or released`() throws {
    var numbers: [Int32] = [0, 0]
    try #require(unsafe pipe(&numbers) == 0)
    let closed = Descriptor(owning: numbers[0])
    _ = consume closed
    let kept = Descriptor(owning: numbers[1]).release()
    #expect(kept == numbers[1])
    #expect(fcntl(kept, F_GETFD) != -1)
    close(kept)
  }

  /// Restores the limit afterwards, because starting a child process takes time in proportion to it.
  @Test func `the descriptor limit can be raised to the hard limit`() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #expect(unsafe getrlimit(resource, &limit) == 0)
    #expect(raiseDescriptorLimit() == Int(clamping: limit.rlim_max))
    _ = unsafe setrlimit(resource, &limit)
  }

  @Test func `users and groups are found by name and by number`() {
    #expect(userID("root") == 0)
    #expect(userID("4321") == 4_321)
    #expect(groupID("root") == 0)
    #expect(userID("no-such-user-here") == nil)
    #expect(groupID("no-such-group-here") == nil)
  }
}

/// Sockets from plain system calls, without this module.
enum BareSocket {
  /// Returns a socket that is bound to the path and doesn't listen, or −1.
  static func bindUnix(_ path: String) -> Int32 {
    let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let result = unsafe withUnsafeBytes(of: &address) {
      unsafe bind(
        number, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(MemoryLayout<sockaddr_un>.size))
    }
    return result == 0 ? number : -1
  }
}

extension String {
  func withUTF8Bytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    unsafe Array(utf8).withUnsafeBytes { unsafe body($0) }
  }
}
