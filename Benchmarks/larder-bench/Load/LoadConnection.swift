import Platform
import Wire

/// One connection of the load: what it sent and when, and what of the replies has come.
struct LoadConnection<Session: BitwiseCopyable>: ~Copyable {
  let descriptor: Descriptor
  let session: Session
  /// What was read and not understood yet: the beginning of a reply.
  var input = ByteBuffer()
  /// What the socket did not take yet.
  var unsent = ByteBuffer()
  /// From when the latency of each unanswered request counts, by its sequence: a power of two of them, with room for replies that
  /// overtake one another.
  private var times: [UInt64]
  /// Requests sent and requests answered, counted round.
  private(set) var sent: UInt32 = 0
  private var answered: UInt32 = 0
  /// Requests whose planned time has come.
  var released = 0
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

  /// Notes that the next request is sent.
  @inline(__always)
  mutating func noteSent(countingFrom time: UInt64) {
    times[Int(truncatingIfNeeded: sent) & (times.count &- 1)] = time
    sent &+= 1
  }

  /// Reads what is there, as far as there is room.
  @inline(__always)
  mutating func read() -> Transfer {
    let room = 65_536
    return unsafe input.fill(room) { buffer -> (written: Int, result: Transfer) in
      let transfer = unsafe descriptor.receive(into: buffer)
      if case .moved(let count) = transfer { return (count, transfer) }
      return (0, transfer)
    }
  }

  /// Counts the whole replies that were read.
  /// - Returns: false when the bytes can't be understood, and the connection can't go on.
  @inline(__always)
  mutating func takeReplies<T: Target>(of target: T, into tally: inout Tally, now: UInt64) -> Bool
  where T.Session == Session {
    var place = 0
    var isUnderstood = true
    while place < input.count {
      let scan = unsafe target.scan(RawSpan(_unsafeBytes: input.bytes), at: place)
      guard case .reply(let reply) = scan else {
        if scan == .malformed {
          tally.protocolErrors += 1
          isUnderstood = false
        }
        break
      }
      place = reply.end
      tally.count(reply)
      guard reply.isLast else { continue }
      guard outstanding > 0 else {
        tally.protocolErrors += 1
        isUnderstood = false
        break
      }
      let sequence = reply.sequence ?? answered
      tally.record(since: times[Int(truncatingIfNeeded: sequence) & (times.count &- 1)], now: now)
      answered &+= 1
    }
    if place > 0 { input.consume(place) }
    return isUnderstood
  }
}
