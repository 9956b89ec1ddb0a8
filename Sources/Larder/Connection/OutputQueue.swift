import Wire

/// The requests that wait to be written to the channel, and which thread writes them.
///
/// One thread at a time writes: it takes everything that waits as one batch, and writes it without holding the lock,
/// while further requests collect here. A plain value; the lock of the connection's state protects it.
struct OutputQueue: ~Copyable, Sendable {
  private var buffer = ByteBuffer()
  /// Memory for the next batch.
  private var spare = ByteBuffer()
  private var isWriting = false
  /// Whether the channel takes nothing more for now. The event loop continues when it may.
  private(set) var isBlocked = false
  /// The bytes appended since the connection began.
  private var appendedBytes: UInt64 = 0
  /// The bytes appended since the connection began that a writer has taken: the server may have received them.
  private(set) var takenBytes: UInt64 = 0

  /// Buffers above this size are released when they are empty.
  private static var maxIdleCapacity: Int { 1 << 20 }
  /// The bytes that may wait to be written before calls have to wait too.
  private static var limit: Int { 4 << 20 }

  var isEmpty: Bool { buffer.isEmpty }
  var isFull: Bool { buffer.count >= Self.limit }

  /// Whether everything has been written.
  var isIdle: Bool { buffer.isEmpty && !isWriting && !isBlocked }

  /// Whether there are bytes to write that no thread writes.
  var needsWriter: Bool { !buffer.isEmpty && !isWriting && !isBlocked }

  // MARK: Appending

  /// Appends a request.
  /// - Returns: The position of the request's end in the connection's output.
  @inline(__always)
  mutating func append<Q: ServerRequest>(_ request: Q, store: UInt16, id: UInt32) -> UInt64 {
    let before = buffer.count
    let start = buffer.beginRequest(Q.operation, store: store, id: id)
    request.encode(into: &buffer)
    buffer.endFrame(start)
    appendedBytes &+= UInt64(buffer.count &- before)
    return appendedBytes
  }

  /// Appends the hello.
  mutating func append(_ hello: ClientHello, id: UInt32) {
    let before = buffer.count
    buffer.appendRequest(hello, id: id)
    appendedBytes &+= UInt64(buffer.count - before)
  }

  /// Appends a request without a body.
  mutating func append(_ operation: Wire.Operation, store: UInt16 = 0, id: UInt32) {
    buffer.appendRequest(operation, store: store, id: id)
    appendedBytes &+= UInt64(Frame.headerSize)
  }

  /// Appends more credit for a reply stream.
  mutating func append(creditBytes: Int, id: UInt32) {
    let before = buffer.count
    let start = buffer.beginRequest(.credit, id: id)
    buffer.append(UInt32(clamping: creditBytes))
    buffer.endFrame(start)
    appendedBytes &+= UInt64(buffer.count - before)
  }

  // MARK: Writing

  /// Makes the calling thread the writer.
  mutating func beginWriting() { isWriting = true }

  /// Moves everything that waits to the empty `batch`, for the writer.
  mutating func takeBatch(_ batch: inout ByteBuffer) {
    if batch.capacity == 0 { swap(&batch, &spare) }
    swap(&batch, &buffer)
    takenBytes &+= UInt64(batch.count)
  }

  /// Ends the writing, and keeps the memory of the empty `batch` if it is worth it.
  mutating func endWriting(_ batch: inout ByteBuffer) {
    isWriting = false
    if batch.capacity > Self.maxIdleCapacity { batch.releaseStorage() }
    if batch.capacity > spare.capacity { swap(&batch, &spare) }
    if buffer.isEmpty, buffer.capacity > Self.maxIdleCapacity { buffer.releaseStorage() }
  }

  /// Ends the writing because the channel is full, and puts the rest of `batch` back in front.
  mutating func block(_ batch: inout ByteBuffer) {
    takenBytes &-= UInt64(batch.count)
    if !buffer.isEmpty { buffer.withSpan { batch.append($0) } }
    swap(&batch, &buffer)
    isWriting = false
    isBlocked = true
  }

  /// Ends the writing because the channel failed. Nothing more is written.
  mutating func fail() {
    isWriting = false
    isBlocked = true
  }

  /// Records that the channel may take more again.
  mutating func unblock() { isBlocked = false }

  /// Discards everything, because the connection is gone.
  mutating func reset() {
    buffer.removeAll()
    isWriting = false
    isBlocked = false
    appendedBytes = 0
    takenBytes = 0
  }
}
