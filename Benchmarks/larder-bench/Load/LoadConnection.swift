import Platform
import Wire

/// One connection of the load: its outstanding requests with their times, and unprocessed input and output.
struct LoadConnection<Session: BitwiseCopyable>: ~Copyable {
  let descriptor: Descriptor
  let session: Session
  /// Received bytes that do not form a whole reply yet.
  private var input = ByteBuffer()
  /// Bytes that the socket has not accepted yet.
  var unsent = ByteBuffer()
  /// The time from which each outstanding request's latency counts, by sequence number. The count is a power of two,
  /// with room for replies that overtake each other.
  private var times: [UInt64]
  /// The numbers of requests sent and answered, which wrap around.
  private(set) var sent: UInt32 = 0
  private var answered: UInt32 = 0
  /// The number of requests whose scheduled time has come.
  var released = 0
  /// The key that the next request must write, because the previous one read it (YCSB F).
  var followUp: UInt64?
  var isOpen = true

  init(_ descriptor: consuming Descriptor, session: Session, pipeline: Int) {
    self.descriptor = descriptor
    self.session = session
    var capacity = 1
    while capacity < 4 * pipeline { capacity *= 2 }
    times = Array(repeating: 0, count: capacity)
  }

  @inline(__always) var outstanding: Int { Int(sent &- answered) }

  /// Records that the next request is being sent.
  @inline(__always)
  mutating func recordSent(countingFrom time: UInt64) {
    times[Int(truncatingIfNeeded: sent) & (times.count &- 1)] = time
    sent &+= 1
  }

  /// Reads available bytes, up to 64 KiB.
  @inline(__always)
  mutating func read() -> Transfer {
    let room = 65_536
    return unsafe input.fill(room) { buffer -> (written: Int, result: Transfer) in
      let transfer = unsafe descriptor.receive(into: buffer)
      if case .moved(let count) = transfer { return (count, transfer) }
      return (0, transfer)
    }
  }

  /// Counts the whole replies in the input.
  /// - Returns: False if the bytes are malformed and the connection must be closed.
  @inline(__always)
  mutating func processReplies<T: Target>(of target: T, into tally: inout Tally, now: UInt64) -> Bool
  where T.Session == Session {
    var offset = 0
    var isValid = true
    while offset < input.count {
      let scan = unsafe target.scan(RawSpan(_unsafeBytes: input.bytes), at: offset)
      guard case .reply(let reply) = scan else {
        if scan == .malformed {
          tally.protocolErrors += 1
          isValid = false
        }
        break
      }
      offset = reply.end
      tally.count(reply)
      guard reply.isLast else { continue }
      guard outstanding > 0 else {
        tally.protocolErrors += 1
        isValid = false
        break
      }
      let sequence = reply.sequence ?? answered
      tally.record(since: times[Int(truncatingIfNeeded: sequence) & (times.count &- 1)], now: now)
      answered &+= 1
    }
    if offset > 0 { input.consume(offset) }
    return isValid
  }
}

/// The connections of one thread, which are mutated in place.
@safe
struct LoadConnections<Session: BitwiseCopyable>: ~Copyable {
  private let slots: UnsafeMutablePointer<LoadConnection<Session>>
  private let capacity: Int
  private(set) var count = 0

  init(capacity: Int) {
    self.capacity = capacity
    unsafe slots = .allocate(capacity: capacity)
  }

  deinit {
    unsafe slots.deinitialize(count: count)
    unsafe slots.deallocate()
  }

  mutating func append(_ connection: consuming LoadConnection<Session>) {
    precondition(count < capacity)
    unsafe (slots + count).initialize(to: connection)
    count += 1
  }

  /// Safe because the index is checked, and exclusivity keeps the table unchanged during an access.
  subscript(index: Int) -> LoadConnection<Session> {
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
}
