import Basics
import Platform
import Synchronization
import Wire

/// One connection to the server, made anew whenever it is lost and wanted.
///
/// Calls come from any task: they put their requests into `state.output` and wait in `state.table`. One of them at a time writes
/// (`state.isWriting`). The client's loop reads, and it alone makes and ends connections.
final class Connection: Sendable {
  let number: Int
  let address: Address
  let configuration: LarderClient.Configuration
  let loop: IOLoop
  let state: Lock<State>
  /// What has been received. Held by whoever reads, and taken before `state`.
  let reading = Lock(Reading())
  /// How many calls came together lately: a hint for calls that have not taken the lock yet.
  let company = Atomic<Int>(0)
  /// Whether a call is about to write for all others, which then need not.
  let isGathering = Atomic<Bool>(false)
  /// Numbers the calls, which a cancellation finds them by.
  private let tokens = Atomic<UInt64>(0)

  struct State: ~Copyable, Sendable {
    var link: ConnectionStateMachine
    var table: PendingTable<Caller>
    /// Calls that wait for a connection or for their turn.
    var line = WaitingLine<Caller>()
    /// Calls that wait for a store to be opened by another, by the store's number.
    var openers: [UInt16: WaitingLine<Caller>] = [:]
    var handles = StoreHandles()
    var limits = ServerLimits()
    /// As it called itself last.
    var serverName: String?
    var socket: SocketReference?
    /// A socket that was made elsewhere, for the loop to take.
    var arrival: Arrival?
    var isResolving = false
    /// Why the connection is over, for the loop to act on.
    var end: ConnectionEnd?

    /// Requests that wait to be written, and memory for those that come while they are.
    var output = ByteBuffer()
    var spare = ByteBuffer()
    var isWriting = false
    /// The socket takes nothing more for now; the loop writes when it does.
    var isBlocked = false
    /// Bytes put into this connection, and bytes that the kernel may have taken.
    var queuedBytes: UInt64 = 0
    var handedBytes: UInt64 = 0

    var direct = DirectReading()
    /// How many callers have a permit and have not used it.
    var permits = 0
    var lastReceived: UInt64 = 0
    /// When the loop is to look at deadlines.
    var nextLook = UInt64.max
    /// Who waits in `shutdown` for the last reply.
    var drainers: [Caller] = []
    var isDraining = false
  }

  init(number: Int, address: Address, configuration: LarderClient.Configuration, loop: IOLoop) {
    self.number = number
    self.address = address
    self.configuration = configuration
    self.loop = loop
    state = Lock(
      State(
        link: ConnectionStateMachine(
          backoff: configuration.backoff, attemptMilliseconds: max(1, configuration.connectTimeout.wholeMilliseconds)),
        table: PendingTable(credit: configuration.credit)))
  }

  func nextToken() -> UInt64 {
    tokens.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Whether the loop has something to wait for.
  var isActive: Bool { state.withLock { $0.link.isActive } }

  /// When `tend` has something to do, in milliseconds; `.max` for never.
  var nextDue: UInt64 {
    state.withLock { state in
      state.arrival != nil || state.end != nil ? 0 : min(state.link.nextDue, state.nextLook)
    }
  }
}

/// A socket that is closed when the last who uses it lets go.
final class SocketReference: Sendable {
  let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) {
    self.descriptor = descriptor
  }
}

/// What became of an attempt to connect.
struct Arrival: Sendable {
  let incarnation: UInt64
  let outcome: Outcome

  enum Outcome: Sendable {
    case connected(SocketReference)
    case pending(SocketReference)
    case failed(String)
  }
}

/// Why a connection is over.
enum ConnectionEnd: Sendable {
  /// The server closed it, or it broke: unanswered requests may have been executed.
  case broken(String)
  /// The server said that it ends: unanswered requests were not executed.
  case notice(LarderError)
  case violation(String)
}
