import Wire

/// Reads a reply stream frame by frame. Releasing it before the end cancels the stream.
final class ReplyStreamReader: Sendable {
  private let connection: ServerConnection
  private let id: ReplyStreamID
  /// Keeps the client's connections open while the stream is read.
  private let core: ClientCore

  init(_ core: ClientCore, _ connection: ServerConnection, _ id: ReplyStreamID) {
    self.core = core
    self.connection = connection
    self.id = id
  }

  deinit {
    // Has no effect on a stream that has been read to its end.
    connection.abandon(id)
  }

  /// Checks that the server responds on the stream's connection, and that the reader has taken every frame that arrived
  /// before the response.
  func isUpToDate(timeout milliseconds: UInt64) async -> Bool {
    let deadline = CallDeadline(timeout: milliseconds)
    guard (try? await connection.call(PingRequest(), deadline: deadline)) != nil else { return false }
    // If the connection was lost meanwhile, the stream is over, and nobody waits.
    return connection.isReaderWaiting(for: id)
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
  private var credit: Int
  /// The bytes that the reader has taken and the server was not given new credit for.
  private var uncreditedBytes = 0
  /// The error that the stream ends with, after its frames.
  var failure: LarderError?

  init(credit: Int) {
    self.credit = credit
  }

  var isEmpty: Bool { frames.isEmpty }

  mutating func append(_ frame: Frame) { frames.append(frame) }

  /// Removes and returns the oldest frame, for the reader. O(frames), which the credit keeps few.
  mutating func popFirst() -> Frame? {
    guard !frames.isEmpty else { return nil }
    let frame = frames.removeFirst()
    readerDidTake(frame.size)
    return frame
  }

  // MARK: Flow control

  /// Takes the size of a frame that has arrived off the credit.
  /// - Returns: False if there was no credit left.
  mutating func spendCredit(_ frameSize: Int) -> Bool {
    guard credit > 0 else { return false }
    credit -= frameSize
    return true
  }

  /// Records that the reader has taken a frame.
  mutating func readerDidTake(_ frameSize: Int) { uncreditedBytes += frameSize }

  /// Grants credit for the bytes that the reader has taken, once they are worth a frame or the server has no credit
  /// left.
  /// - Parameter threshold: The number of bytes that are worth a frame.
  /// - Returns: The bytes to grant the server, or nil.
  mutating func grantCredit(threshold: Int) -> Int? {
    guard uncreditedBytes > 0, uncreditedBytes >= threshold || (isEmpty && credit <= 0) else { return nil }
    defer { uncreditedBytes = 0 }
    credit += uncreditedBytes
    return uncreditedBytes
  }
}
