import Glibc
import Platform
import TestSupport

extension TemporaryFolder {
  func has(_ name: String) -> Bool {
    var status = stat()
    return unsafe lstat(file(name), &status) == 0
  }

  /// Returns the permission bits of a file.
  func mode(_ name: String) -> UInt32 {
    var status = stat()
    _ = unsafe lstat(file(name), &status)
    return status.st_mode & 0o777
  }
}

/// Waits at most 5 seconds until a descriptor is ready.
func wait(_ interest: Poll.Interest, on socket: borrowing Descriptor) throws {
  let poll = try Poll()
  try poll.add(socket.number, interest, token: 1)
  var events = Poll.Events(capacity: 1)
  _ = poll.wait(timeoutMilliseconds: 5_000, into: &events)
}

/// Accepts the next connection of a listening socket.
func accept(from listener: borrowing ListeningSocket) throws -> Descriptor {
  try wait(.reading, on: listener.descriptor)
  guard let accepted = try listener.accept() else { throw TestFailure() }
  return accepted
}

/// A failure that the place of its throw explains.
struct TestFailure: Error {}

extension Socket.Connecting {
  /// Returns the socket, whether the connection is established or not.
  consuming func descriptor() -> Descriptor {
    switch consume self {
    case .connected(let socket): socket
    case .pending(let socket): socket
    }
  }
}
