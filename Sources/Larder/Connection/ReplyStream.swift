import Wire

/// Reads a reply stream frame by frame. Releasing it before the end cancels the stream.
final class ReplyStream: Sendable {
  private let connection: Connection
  private let id: ReplyStreamID
  /// Keeps the client's connections open while the stream is read.
  private let core: ClientCore

  init(_ core: ClientCore, _ connection: Connection, _ id: ReplyStreamID) {
    self.core = core
    self.connection = connection
    self.id = id
  }

  deinit {
    // Has no effect on a stream that has been read to its end.
    connection.abandon(id)
  }

  /// Returns the records of the next frame, and whether more frames follow.
  func next(deadline: UInt64) async throws(LarderError) -> (body: [UInt8], hasMore: Bool) {
    switch await connection.nextFrame(of: id, deadline: deadline) {
    case .body(let body, let stream): return (body, stream != nil)
    case .failed(let error, _): throw error.ofRead(true)
    default: preconditionFailure("A reply stream has frames only.")
    }
  }
}

/// Identifies a reply stream within its connection.
struct ReplyStreamID: Hashable, Sendable {
  let slot: Int
  let token: UInt64
}

/// The frames of a reply stream that have arrived and were not read, and the stream's flow control.
struct ReplyStreamBuffer: Sendable {
  struct Frame: Sendable {
    let body: [UInt8]
    /// The size of the whole frame, in bytes.
    let size: Int
  }

  private var frames: [Frame] = []
  /// The bytes that the server may still send.
  var credit: Int
  /// The bytes that the reader has taken and the server was not given new credit for.
  var uncreditedBytes = 0
  /// The error that the stream ends with, after its frames.
  var failure: LarderError?

  init(credit: Int) {
    self.credit = credit
  }

  var isEmpty: Bool { frames.isEmpty }

  mutating func append(_ frame: Frame) { frames.append(frame) }

  /// Removes and returns the oldest frame. O(frames), which the credit keeps few.
  mutating func popFirst() -> Frame? {
    frames.isEmpty ? nil : frames.removeFirst()
  }
}
