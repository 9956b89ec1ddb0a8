import Platform
import Wire

/// What one wakeup read: the input of several connections, and the replies that go back to each.
///
/// All of the input is read first, then executed, then the replies are sent. So a store's lock is taken once for many
/// connections and never held during a system call, and the memory that one connection's requests need is fetched while
/// another's are looked at. Owned by a worker's `EventLoop`; its buffers are used again in every wakeup.
@safe
struct ReadBatch: ~Copyable {
  /// The number of connections in a batch. The first one waits until the last one has been read.
  static let capacity = 16
  /// The maximum that is read from a connection at a time, in bytes.
  static let maxInputBytes = 64 << 10
  /// The size of a reply buffer that is kept for later batches, in bytes. A larger one is freed.
  static let maxKeptReplyBytes = 256 << 10

  /// What one connection sent, and its replies.
  struct Slot: ~Copyable {
    fileprivate(set) var token = ConnectionToken(slot: 0, generation: 0)
    fileprivate var byteCount = 0
    /// The end of the requests whose memory has been prefetched.
    var prefetchEnd = 0
    var replies = ReplyBuffer()
  }

  private let slots: UnsafeMutablePointer<Slot>
  private let input: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init() {
    unsafe slots = .allocate(capacity: Self.capacity)
    for index in 0..<Self.capacity { unsafe (slots + index).initialize(to: Slot()) }
    unsafe input = .allocate(byteCount: Self.capacity * Self.maxInputBytes, alignment: 4_096)
  }

  deinit {
    unsafe slots.deinitialize(count: Self.capacity)
    unsafe slots.deallocate()
    unsafe input.deallocate()
  }

  /// Safe because the index is checked, and slots never move.
  subscript(index: Int) -> Slot {
    @inline(__always)
    unsafeAddress {
      precondition(index >= 0 && index < count)
      return unsafe UnsafePointer(slots + index)
    }
    @inline(__always)
    unsafeMutableAddress {
      precondition(index >= 0 && index < count)
      return unsafe slots + index
    }
  }

  /// The room that the next connection is read into.
  @unsafe @inline(__always)
  var room: UnsafeMutableRawBufferPointer {
    precondition(count < Self.capacity)
    let start = count &* Self.maxInputBytes
    return unsafe UnsafeMutableRawBufferPointer(rebasing: input[start..<start &+ Self.maxInputBytes])
  }

  /// Adds a connection whose input has been read into `room`.
  @inline(__always)
  mutating func add(_ token: ConnectionToken, byteCount: Int) {
    precondition(count < Self.capacity && byteCount <= Self.maxInputBytes)
    count &+= 1
    self[count &- 1].token = token
    self[count &- 1].byteCount = byteCount
    self[count &- 1].prefetchEnd = 0
  }

  /// What a connection sent. Valid until the connection is removed.
  @unsafe @inline(__always)
  func bytes(_ index: Int) -> UnsafeRawBufferPointer {
    let start = index &* Self.maxInputBytes
    return unsafe UnsafeRawBufferPointer(rebasing: input[start..<start &+ self[index].byteCount])
  }

  /// Removes the connection that was added last.
  mutating func removeLast() {
    self[count - 1].replies.reset(maxKeptBytes: Self.maxKeptReplyBytes)
    count -= 1
  }

  /// Removes all connections, with the replies to those that have ended since they were read.
  mutating func removeAll() {
    for index in 0..<count { self[index].replies.reset(maxKeptBytes: Self.maxKeptReplyBytes) }
    count = 0
  }
}
