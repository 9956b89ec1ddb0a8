// A large value:
//
// 1. When the beginning of a frame of 32 KiB or more has arrived, `ConnectionInput` makes a `LargeFrame`. The rest is
//    received where it stays: into a `ValueMemory`, in slices of 256 KiB, between which other connections are served. A
//    client that has sent one large frame is expected to send another of this size, which is received like that from
//    its first byte.
// 2. The complete frame is executed in its memory. `put` passes that on to `ExternalValues`, which shares the memory
//    instead of copying the value if there is little beside it. In a store with a limit, entries are evicted in slices
//    first (`EntryMap.evictBriefly`): the request is deferred until there is room.
// 3. A `get` attaches the value to its reply. `Outbox` sends what is before it, the value from its memory, and what is
//    behind it with one `sendmsg` for each slice of 512 KiB.
// 4. The memory is freed when neither the store nor an outbox refers to it: a value that is overwritten or deleted
//    while it is sent arrives whole. Until then it counts as a buffer.

import Platform
import Storage
import Wire

/// The input of a connection that is not executed yet: the beginning of an incomplete frame, or frames that wait until
/// the client reads its replies, or a job has changed entries. A large frame is received into memory that a store can
/// keep. All memory is taken from the limit of all connections first.
///
/// Owned by a `Connection`.
struct ConnectionInput: ~Copyable {
  /// What remains once some of the input has been executed.
  enum Rest {
    case nothing
    /// The frame that was there before.
    case sameFrame
    case newFrame
    /// A frame for which there is no memory.
    case refusedFrame(InputShortage)
  }

  private var memory: InputMemory
  private var inbox = ByteBuffer()
  /// A large frame that is not complete or waits to be executed. The inbox is empty then.
  private var largeFrame: LargeFrame?
  /// The size of the large frame that is being received, or that probably comes next; 0 for none.
  private var largeFrameSize = 0
  /// The minimum size of the frame in `largeFrame`; 0 if nothing is known of it.
  private var minFrameSize = 0
  /// The size of the requests that wait and have been looked at, in bytes.
  private(set) var visitedByteCount = 0
  /// Finds requests in the input.
  private let session: any Session

  /// - Parameter session: Finds requests in the input.
  init(_ memory: consuming InputMemory, _ session: any Session) {
    self.memory = memory
    self.session = session
  }

  var isEmpty: Bool { inbox.isEmpty && largeFrame == nil }

  /// The size of the input, in bytes.
  var byteCount: Int { largeFrame?.count ?? inbox.count }

  /// Whether the next bytes belong to what is here, or probably to a large frame.
  @inline(__always)
  var expectsMore: Bool { !inbox.isEmpty || largeFrameSize != 0 }

  /// Whether another client has got its memory, so that everything must be removed soon.
  var isRevoked: Bool { memory.isRevoked }

  /// Whether it must be looked at again, because more has arrived: not before the large frame may be complete, or needs
  /// more memory. Looking for the end of some frames takes as long as they are.
  var mayBeComplete: Bool {
    guard let largeFrame else { return true }
    return largeFrame.count >= minFrameSize || largeFrame.isFull
  }

  /// The memory of the first frame, if a store can keep it.
  var valueMemory: ValueMemory? { largeFrame?.memory }

  /// The input. It stays where it is until this is changed.
  @unsafe
  var bytes: UnsafeRawBufferPointer { unsafe largeFrame?.bytes ?? inbox.bytes }

  /// Whether it has no whole frame.
  /// - Parameter maxFrameSize: The maximum size of a frame, as its protocol counts it.
  func isIncomplete(maxFrameSize: Int) -> Bool {
    let bytes = unsafe RawSpan(_unsafeBytes: bytes)
    return if case .partial = session.scan(bytes, maxSize: maxFrameSize) { true } else { false }
  }

  // MARK: Memory

  /// Gives back memory that is not allocated any more.
  private mutating func memoryMayHaveShrunk() {
    memory.shrink(to: inbox.capacity + (largeFrame?.memory.byteCount ?? 0))
  }

  /// Makes room for more in the inbox.
  private mutating func reserve(_ byteCount: Int) throws(InputShortage) {
    let capacity = inbox.capacity(reserving: byteCount)
    guard capacity != inbox.capacity else {
      _ = inbox.tryReserve(byteCount)
      return
    }
    // Until the contents have been moved, both are allocated.
    try memory.grow(by: capacity)
    let isReserved = inbox.tryReserve(byteCount)
    memoryMayHaveShrunk()
    if !isReserved { throw .system }
  }

  /// Allocates memory for a large frame, in addition to what there is.
  /// - Parameter isLikely: Whether the frame has not begun, so that nobody else may lose memory for it.
  private mutating func makeLargeFrame(
    expecting frameSize: Int, isLikely: Bool = false
  ) throws(InputShortage) -> LargeFrame {
    try memory.grow(by: frameSize + LargeFrame.spareSize, revoking: !isLikely)
    guard let frame = LargeFrame(expecting: frameSize) else {
      memoryMayHaveShrunk()
      throw .system
    }
    return frame
  }

  // MARK: Receiving

  /// Reads more from a channel.
  /// - Parameter maxSize: The maximum that is read of what isn't a large frame, in bytes.
  /// - Returns: The result, and whether there may be more.
  mutating func receive(
    from channel: borrowing ByteChannel, maxSize: Int = .max
  ) throws(InputShortage) -> (ChannelTransfer, fillsRoom: Bool) {
    try largeFrameSize > 0
      ? receiveIntoLargeFrame(from: channel, maxSize: maxSize) : receiveIntoInbox(from: channel, maxSize: maxSize)
  }

  private mutating func receiveIntoInbox(
    from channel: borrowing ByteChannel, maxSize: Int
  ) throws(InputShortage) -> (ChannelTransfer, fillsRoom: Bool) {
    // The room grows with what has arrived, not with what a frame announces.
    let roomSize = min(max(ReadBatch.maxInputBytes, inbox.count), maxSize)
    try reserve(roomSize)
    return unsafe inbox.fill(roomSize) { room in
      let transfer = unsafe channel.receive(into: room)
      guard case .moved(let count) = transfer else { return (0, (transfer, false)) }
      return (count, (transfer, count == room.count))
    }
  }

  private mutating func receiveIntoLargeFrame(
    from channel: borrowing ByteChannel, maxSize: Int
  ) throws(InputShortage) -> (ChannelTransfer, fillsRoom: Bool) {
    try growIfFull()
    var frame: LargeFrame
    if let largeFrame = largeFrame.take() {
      frame = largeFrame
    } else if let likely = try? makeLargeFrame(expecting: largeFrameSize, isLikely: true) {
      frame = likely
    } else {
      largeFrameSize = 0
      return try receiveIntoInbox(from: channel, maxSize: maxSize)
    }
    let result = frame.receive(from: channel)
    if frame.count > 0 { largeFrame = frame } else { memoryMayHaveShrunk() }
    return result
  }

  /// Moves a large frame that is full to more memory. That doesn't depend on what its beginning announces, because
  /// requests behind it may wait, too.
  private mutating func growIfFull() throws(InputShortage) {
    guard let full = largeFrame, full.isFull else { return }
    var frame = try makeLargeFrame(expecting: LargeFrame.room(for: largeFrameSize, arrived: full.count))
    unsafe frame.append(RawSpan(_unsafeBytes: full.bytes))
    largeFrame = frame
    memoryMayHaveShrunk()
  }

  /// Adds the beginning of a frame that was received elsewhere.
  /// - Parameter maxFrameSize: The maximum size of a large frame; 0 if there must be none.
  mutating func append(_ bytes: RawSpan, maxFrameSize: Int) throws(InputShortage) {
    if try beginLargeFrame(with: bytes, maxFrameSize: maxFrameSize) { return }
    try reserve(bytes.byteCount)
    inbox.append(bytes)
  }

  /// Puts input into the memory of a large frame if it is the beginning of one. Everything else is as it was if not.
  private mutating func beginLargeFrame(with bytes: RawSpan, maxFrameSize: Int) throws(InputShortage) -> Bool {
    guard case .partial(let frameSize) = session.scan(bytes, maxSize: maxFrameSize),
      frameSize >= LargeFrame.minSize
    else { return false }
    var frame = try makeLargeFrame(expecting: LargeFrame.room(for: frameSize, arrived: bytes.byteCount))
    frame.append(bytes)
    (largeFrame, largeFrameSize, minFrameSize) = (frame, frameSize, frameSize)
    return true
  }

  // MARK: Removing

  /// Removes whole frames that were executed from the beginning.
  /// - Parameter maxFrameSize: The maximum size of a large frame; 0 if there must be none.
  mutating func remove(_ byteCount: Int, maxFrameSize: Int) -> Rest {
    visitedByteCount = 0
    defer { memoryMayHaveShrunk() }
    do throws(InputShortage) {
      if let frame = largeFrame { return try remove(byteCount, of: frame, maxFrameSize: maxFrameSize) }
      inbox.consume(byteCount)
      guard !inbox.isEmpty else {
        inbox.releaseStorage()
        return .nothing
      }
      try keepInbox(maxFrameSize: maxFrameSize)
      return byteCount > 0 ? .newFrame : .sameFrame
    } catch { return .refusedFrame(error) }
  }

  /// Keeps what is left in the inbox, in the memory of a large frame if it is the beginning of one.
  private mutating func keepInbox(maxFrameSize: Int) throws(InputShortage) {
    var rest = ByteBuffer()
    swap(&rest, &inbox)
    if try rest.withSpan({ bytes throws(InputShortage) in try beginLargeFrame(with: bytes, maxFrameSize: maxFrameSize) }
    ) {
      return
    }
    // The storage of a large frame is not kept for the small rest after it.
    if rest.capacity > 16 * (rest.count + ReadBatch.maxInputBytes) {
      try memory.grow(by: inbox.capacity(reserving: rest.count))
      unsafe inbox.append(rest.bytes)
    } else {
      swap(&rest, &inbox)
    }
  }

  private mutating func remove(
    _ byteCount: Int, of frame: LargeFrame, maxFrameSize: Int
  ) throws(InputShortage) -> Rest {
    let bytes = unsafe RawSpan(_unsafeBytes: frame.bytes)
    let scan = session.scan(bytes, maxSize: maxFrameSize)
    if byteCount == 0 { return try keep(frame, scan, bytes, maxFrameSize: maxFrameSize) }
    (largeFrame, largeFrameSize, minFrameSize) = (nil, 0, 0)
    let rest = bytes.extracting(byteCount..<bytes.byteCount)
    // A client that sends a large frame probably sends others of this size.
    if case .whole(let size) = scan, size == byteCount, byteCount >= LargeFrame.minSize,
      rest.byteCount <= LargeFrame.spareSize
    {
      largeFrameSize = byteCount
    }
    guard !rest.isEmpty else { return .nothing }
    if largeFrameSize > 0, var next = try? makeLargeFrame(expecting: byteCount, isLikely: true) {
      next.append(rest)
      largeFrame = next
    } else {
      largeFrameSize = 0
      try append(rest, maxFrameSize: maxFrameSize)
    }
    return .newFrame
  }

  /// Keeps a large frame that was not executed.
  private mutating func keep(
    _ frame: LargeFrame, _ scan: InputScan, _ bytes: RawSpan, maxFrameSize: Int
  ) throws(InputShortage) -> Rest {
    // A whole frame waits to be executed.
    guard case .partial(let frameSize) = scan else { return .sameFrame }
    if frameSize < LargeFrame.minSize {
      (largeFrame, largeFrameSize, minFrameSize) = (nil, 0, 0)
      try reserve(bytes.byteCount)
      inbox.append(bytes)
      return .sameFrame
    }
    (largeFrameSize, minFrameSize) = (frameSize, frameSize)
    return .sameFrame
  }

  // MARK: Requests that wait

  /// The requests that wait for a stream. They stay where they are until this is changed.
  @unsafe
  var waitingBytes: UnsafeRawBufferPointer { unsafe inbox.bytes }

  /// Notes that the next of the requests that wait has been looked at. After requests have been removed, this begins with
  /// the first one again.
  mutating func visit(_ byteCount: Int) { visitedByteCount += byteCount }

  /// Changes a request that waits.
  mutating func replaceByte(at offset: Int, with byte: UInt8) { inbox.replace(at: offset, with: byte) }

  /// Discards everything.
  mutating func removeAll() {
    visitedByteCount = 0
    inbox.releaseStorage()
    (largeFrame, largeFrameSize, minFrameSize) = (nil, 0, 0)
    memoryMayHaveShrunk()
  }
}
