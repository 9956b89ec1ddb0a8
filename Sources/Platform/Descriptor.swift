import CLinux
import Glibc

/// A file descriptor that has one owner, and is closed when the owner lets go of it.
package struct Descriptor: ~Copyable, Sendable {
  /// The number, for calls that only borrow it.
  package let number: Int32

  package init(owning number: Int32) {
    self.number = number
  }

  deinit {
    // Linux frees the number even when close reports an error, so there is nothing to try again.
    _ = close(number)
  }

  /// Gives the number away without closing it.
  package consuming func release() -> Int32 {
    let number = number
    discard self
    return number
  }

  /// `recv(2)`; `moved(0)` is the end of the stream.
  @inline(__always)
  package func receive(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    Transfer.of("recv") { unsafe receive_without_cancellation(number, buffer.baseAddress, buffer.count, 0) }
  }

  /// Waits until there is something to read, or the time is up: `ppoll(2)`. Blocks the thread.
  /// - Returns: whether there is.
  package func waitUntilReadable(microseconds: Int) -> Bool {
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    var time = timespec(tv_sec: microseconds / 1_000_000, tv_nsec: microseconds % 1_000_000 * 1_000)
    return unsafe ppoll(&entry, 1, &time, nil) > 0
  }

  /// `send(2)` without a signal when the peer is gone.
  @inline(__always)
  package func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
    Transfer.of("send") {
      unsafe send_without_cancellation(number, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    }
  }

  /// Ends the sending side of a socket; the peer reads the end of the stream behind what was sent.
  package func shutdownSending() {
    _ = shutdown(number, Int32(SHUT_WR))
  }
}
