import CLinux
import Glibc

/// Pieces of memory that are sent to a socket one after the other, with one system call.
@safe
package struct SendPieces: ~Copyable {
  private static let capacity = 16

  private var pieces = unsafe InlineArray<16, iovec>(repeating: iovec())
  private(set) var count = 0
  /// The total size of the pieces.
  package private(set) var byteCount = 0

  package init() {}

  package var isFull: Bool { count == Self.capacity }

  /// Adds a piece, which must stay valid until it has been sent.
  package mutating func append(_ piece: UnsafeRawBufferPointer) {
    unsafe pieces[count] = iovec(
      iov_base: UnsafeMutableRawPointer(mutating: piece.baseAddress), iov_len: piece.count)
    count += 1
    byteCount += piece.count
  }

  subscript(index: Int) -> UnsafeRawBufferPointer {
    precondition(index < count)
    return unsafe UnsafeRawBufferPointer(start: pieces[index].iov_base, count: pieces[index].iov_len)
  }

  fileprivate mutating func withPieces<R>(_ body: (UnsafeMutablePointer<iovec>, Int) -> R) -> R {
    var pieces = unsafe pieces.mutableSpan
    return unsafe pieces.withUnsafeMutableBufferPointer { unsafe body($0.baseAddress!, count) }
  }
}

extension Descriptor {
  /// Sends pieces of memory to a socket: `sendmsg(2)`. Raises no signal if the peer is gone.
  package func send(_ pieces: inout SendPieces) -> Transfer {
    unsafe pieces.withPieces { start, count in
      Transfer.of("sendmsg") {
        unsafe send_pieces_without_cancellation(number, start, count, Int32(MSG_NOSIGNAL))
      }
    }
  }
}
