import Platform
import Storage
import Wire

/// The input of a connection that is not executed yet: the beginning of an incomplete frame, or frames that wait until
/// the client reads its replies. A large frame is received into memory that a store can keep.
///
/// Owned by a `Connection`.
struct ConnectionInput: ~Copyable {
  /// What remains once some of the input has been executed.
  enum Rest {
    case nothing
    /// The frame that was there before.
    case sameFrame
    case newFrame
    /// A frame for which the system has no memory.
    case frameWithoutMemory
  }

  private var inbox = ByteBuffer()
  /// A large frame that is not complete or waits to be executed. The inbox is empty then.
  private var largeFrame: LargeFrame?
  /// The size of the large frame that is being received, or that probably comes next; 0 for none.
  private var largeFrameSize = 0

  var isEmpty: Bool { inbox.isEmpty && largeFrame == nil }

  /// Whether the next bytes belong to what is here, or probably to a large frame.
  @inline(__always)
  var expectsMore: Bool { !inbox.isEmpty || largeFrameSize != 0 }

  /// The size of the storage, in bytes.
  @inline(__always)
  var storageByteCount: Int { inbox.capacity &+ (largeFrameSize == 0 ? 0 : largeFrame?.count ?? 0) }

  /// The memory of the first frame, if a store can keep it.
  var valueMemory: ValueMemory? { largeFrame?.memory }

  /// The input. It stays where it is until this is changed.
  @unsafe
  var bytes: UnsafeRawBufferPointer { unsafe largeFrame?.bytes ?? inbox.bytes }

  /// Reads more from a socket.
  /// - Returns: The result, and whether there may be more.
  mutating func receive(from socket: borrowing Descriptor) -> (Transfer, fillsRoom: Bool) {
    largeFrameSize > 0 ? receiveIntoLargeFrame(from: socket) : receiveIntoInbox(from: socket)
  }

  private mutating func receiveIntoInbox(from socket: borrowing Descriptor) -> (Transfer, fillsRoom: Bool) {
    // The room grows with what has arrived, not with what a frame announces.
    let roomSize = max(ReadBatch.maxInputBytes, inbox.count)
    guard inbox.tryReserve(roomSize) else { return (.failed(.outOfMemory), false) }
    return unsafe inbox.fill(roomSize) { room in
      let transfer = unsafe socket.receive(into: room)
      guard case .moved(let count) = transfer else { return (0, (transfer, false)) }
      return (count, (transfer, count == room.count))
    }
  }

  private mutating func receiveIntoLargeFrame(from socket: borrowing Descriptor) -> (Transfer, fillsRoom: Bool) {
    guard var frame = largeFrame.take() ?? LargeFrame(expecting: largeFrameSize) else {
      return (.failed(.outOfMemory), false)
    }
    let result = frame.receive(from: socket)
    if frame.count > 0 { largeFrame = frame }
    return result
  }

  /// Adds the beginning of a frame that was received elsewhere.
  /// - Parameter maxFrameSize: The maximum size of a large frame; 0 if there must be none.
  mutating func append(_ bytes: RawSpan, maxFrameSize: Int) {
    if !beginLargeFrame(with: bytes, maxFrameSize: maxFrameSize) { inbox.append(bytes) }
  }

  /// Puts input into the memory of a large frame if it is the beginning of one. Everything else is as it was if not.
  private mutating func beginLargeFrame(with bytes: RawSpan, maxFrameSize: Int) -> Bool {
    guard case .partial(let frameSize) = FrameScan(bytes, at: 0, maxLength: maxFrameSize),
      frameSize >= LargeFrame.minSize,
      var frame = LargeFrame(expecting: LargeFrame.room(for: frameSize, arrived: bytes.byteCount))
    else { return false }
    frame.append(bytes)
    (largeFrame, largeFrameSize) = (frame, frameSize)
    return true
  }

  /// Removes whole frames that were executed from the beginning.
  /// - Parameter maxFrameSize: The maximum size of a large frame; 0 if there must be none.
  mutating func remove(_ byteCount: Int, maxFrameSize: Int) -> Rest {
    if let frame = largeFrame { return remove(byteCount, of: frame, maxFrameSize: maxFrameSize) }
    inbox.consume(byteCount)
    guard !inbox.isEmpty else {
      inbox.releaseStorage()
      return .nothing
    }
    keepInbox(maxFrameSize: maxFrameSize)
    return byteCount > 0 ? .newFrame : .sameFrame
  }

  /// Keeps what is left in the inbox, in the memory of a large frame if it is the beginning of one.
  private mutating func keepInbox(maxFrameSize: Int) {
    var rest = ByteBuffer()
    swap(&rest, &inbox)
    if rest.withSpan({ beginLargeFrame(with: $0, maxFrameSize: maxFrameSize) }) { return }
    // The storage of a large frame is not kept for the small rest after it.
    if rest.capacity > 16 * (rest.count + ReadBatch.maxInputBytes) {
      unsafe inbox.append(rest.bytes)
    } else {
      swap(&rest, &inbox)
    }
  }

  private mutating func remove(_ byteCount: Int, of frame: LargeFrame, maxFrameSize: Int) -> Rest {
    let bytes = unsafe RawSpan(_unsafeBytes: frame.bytes)
    let scan = FrameScan(bytes, at: 0, maxLength: maxFrameSize)
    if byteCount == 0 { return keep(frame, scan, bytes, maxFrameSize: maxFrameSize) }
    (largeFrame, largeFrameSize) = (nil, 0)
    let rest = bytes.extracting(byteCount..<bytes.byteCount)
    // A client that sends a large frame probably sends others of this size.
    if case .frame(let header) = scan, header.frameSize == byteCount, rest.byteCount <= LargeFrame.spareSize {
      largeFrameSize = byteCount
    }
    guard !rest.isEmpty else { return .nothing }
    if largeFrameSize > 0, var next = LargeFrame(expecting: byteCount) {
      next.append(rest)
      largeFrame = next
    } else {
      largeFrameSize = 0
      append(rest, maxFrameSize: maxFrameSize)
    }
    return .newFrame
  }

  /// Keeps a large frame that was not executed.
  private mutating func keep(_ frame: LargeFrame, _ scan: FrameScan, _ bytes: RawSpan, maxFrameSize: Int) -> Rest {
    // A whole frame waits to be executed.
    guard case .partial(let frameSize) = scan else { return .sameFrame }
    if frameSize < LargeFrame.minSize {
      (largeFrame, largeFrameSize) = (nil, 0)
      inbox.append(bytes)
      return .sameFrame
    }
    largeFrameSize = frameSize
    guard frame.isFull, !beginLargeFrame(with: bytes, maxFrameSize: maxFrameSize) else { return .sameFrame }
    return .frameWithoutMemory
  }

  /// Discards everything.
  mutating func removeAll() {
    inbox.releaseStorage()
    (largeFrame, largeFrameSize) = (nil, 0)
  }
}
