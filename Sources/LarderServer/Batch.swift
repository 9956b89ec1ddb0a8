import Storage
import Wire

/// What the handling of one wake-up of one connection works on: the output that it will send in one write, the time, and the limits.
///
/// It is made once a worker and passed down by reference, so that a request costs no allocation and no reference count.
struct Batch: ~Copyable {
  var output = ByteBuffer()
  /// Milliseconds of the clock that expiries are measured with, read once a wake-up.
  var now: UInt64 = 0
  /// How many bytes of output the connection may have waiting, beside its outbox.
  var room = 0
  /// Requests answered since the worker last added them up.
  var requests: UInt64 = 0
  let limits: ServerLimits
  let largestValue: Int
  /// Bytes of a frame's body in an answer, past which a new frame begins.
  let frameBytes: Int

  /// In bytes.
  private static let longestMessage = 1_024

  init(limits: ServerLimits) {
    self.limits = limits
    largestValue = limits.largestValueBytes
    frameBytes = min(Answer.frameBytes, limits.largestFrameBytes - Frame.leastLength)
  }

  /// Whether so much waits to be sent that no further request is taken up.
  @inline(__always)
  var isFull: Bool { output.count >= room }

  mutating func fail(_ code: ErrorCode, _ id: UInt32, _ message: String = "") {
    // Some messages repeat what the client sent, which may be as long as a frame and thrice that once it is made UTF-8.
    let isShort = message.utf8.count <= Self.longestMessage
    output.appendError(
      code, id: id, message: isShort ? message : String(message.prefix(Self.longestMessage / 4)) + " …")
  }
}
