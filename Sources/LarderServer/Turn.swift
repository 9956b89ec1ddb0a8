import Platform
import Wire

/// What one wake-up has brought: the input of several connections, and the output that goes back to each.
///
/// All of it is read first, then executed, then sent. So a store's lock is taken once for many connections and never held in a call to the
/// system, and the memory that one connection's request needs arrives while another one's is read.
@safe
struct Turn: ~Copyable {
  /// Connections that are served together; the first one waits for the reading of the last.
  static let capacity = 16
  /// The most that is read from a connection at a time.
  static let inputBytes = 64 << 10
  /// Room for output that is kept from turn to turn, for each place in it.
  private static let keptOutputBytes = 256 << 10

  struct Arrival: ~Copyable {
    var token = ConnectionToken(slot: 0, generation: 0)
    var byteCount = 0
    /// How far its requests have been looked at in order to have the memory ready that they need.
    var lookedAt = 0
    var output = ByteBuffer()
    /// What must be durable before the output may be sent.
    var gates: [Gate] = []
  }

  private let arrivals: UnsafeMutablePointer<Arrival>
  private let input: UnsafeMutableRawBufferPointer
  private(set) var count = 0

  init() {
    unsafe arrivals = .allocate(capacity: Self.capacity)
    for index in 0..<Self.capacity { unsafe (arrivals + index).initialize(to: Arrival()) }
    unsafe input = .allocate(byteCount: Self.capacity * Self.inputBytes, alignment: 4_096)
  }

  deinit {
    unsafe arrivals.deinitialize(count: Self.capacity)
    unsafe arrivals.deallocate()
    unsafe input.deallocate()
  }

  /// Safe because the index is checked, and arrivals never move.
  subscript(index: Int) -> Arrival {
    @inline(__always)
    unsafeAddress {
      precondition(index >= 0 && index < count)
      return unsafe UnsafePointer(arrivals + index)
    }
    @inline(__always)
    unsafeMutableAddress {
      precondition(index >= 0 && index < count)
      return unsafe arrivals + index
    }
  }

  /// Where the next connection is read into.
  @unsafe @inline(__always)
  var room: UnsafeMutableRawBufferPointer {
    precondition(count < Self.capacity)
    let start = count &* Self.inputBytes
    return unsafe UnsafeMutableRawBufferPointer(rebasing: input[start..<start &+ Self.inputBytes])
  }

  /// Adds a connection whose input has been read into `room`.
  @inline(__always)
  mutating func add(_ token: ConnectionToken, byteCount: Int) {
    precondition(count < Self.capacity && byteCount <= Self.inputBytes)
    count &+= 1
    self[count &- 1].token = token
    self[count &- 1].byteCount = byteCount
    self[count &- 1].lookedAt = 0
  }

  /// What came from a connection, until the turn is over.
  @unsafe @inline(__always)
  func bytes(_ index: Int) -> UnsafeRawBufferPointer {
    let start = index &* Self.inputBytes
    return unsafe UnsafeRawBufferPointer(rebasing: input[start..<start &+ self[index].byteCount])
  }

  /// Forgets the connection that was added last.
  mutating func removeLast() {
    recycle(count - 1)
    count -= 1
  }

  /// Forgets all connections, and the output of those that have ended meanwhile.
  mutating func removeAll() {
    for index in 0..<count { recycle(index) }
    count = 0
  }

  private mutating func recycle(_ index: Int) {
    self[index].output.removeAll()
    self[index].gates.removeAll()
    if self[index].output.capacity > Self.keptOutputBytes { self[index].output.releaseStorage() }
  }
}
