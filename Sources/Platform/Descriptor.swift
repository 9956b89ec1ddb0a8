import CLinux
import Glibc

/// A file descriptor with one owner, closed when the owner's lifetime ends.
package struct Descriptor: ~Copyable, Sendable {
  /// The descriptor's number, for calls that only borrow it.
  package let number: Int32

  package init(owning number: Int32) {
    self.number = number
  }

  deinit {
    // Linux frees the number even if close reports an error, so there is nothing to retry.
    _ = close(number)
  }

  /// Returns the number without closing it. The caller becomes its owner.
  package consuming func release() -> Int32 {
    let number = number
    discard self
    return number
  }

  /// Receives bytes from a socket: `recv(2)`. `moved(0)` is the end of the stream.
  @inline(__always)
  package func receive(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    unsafe Socket.receive(into: buffer, from: number)
  }

  /// Waits until the descriptor is readable or the time is up: `ppoll(2)`. Blocks the thread.
  /// - Returns: Whether the descriptor is readable.
  package func waitUntilReadable(microseconds: Int) -> Bool {
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    var time = timespec(tv_sec: microseconds / 1_000_000, tv_nsec: microseconds % 1_000_000 * 1_000)
    return unsafe ppoll(&entry, 1, &time, nil) > 0
  }

  /// Waits until one of the events is reported or the time is up. Blocks the thread.
  /// - Returns: Whether the descriptor is ready.
  package func wait(for events: Poll.Interest, milliseconds: Int32) -> Bool {
    var entry = pollfd(fd: number, events: 0, revents: 0)
    if events.contains(.reading) { entry.events |= Int16(POLLIN) }
    if events.contains(.writing) { entry.events |= Int16(POLLOUT) }
    return unsafe poll(&entry, 1, milliseconds) > 0
  }

  /// Sends bytes to a socket: `send(2)`. Raises no signal if the peer is gone.
  @inline(__always)
  package func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
    unsafe Socket.send(bytes, to: number)
  }

  /// Shuts down the sending side of a socket. The peer reads the end of the stream after everything sent before.
  package func shutdownSending() {
    _ = shutdown(number, Int32(SHUT_WR))
  }
}
