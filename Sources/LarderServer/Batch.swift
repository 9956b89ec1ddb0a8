import Storage
import Wire

/// What the handling of one wake-up of one connection works on: the output that it will send in one write, the time, the limits, and the
/// store whose lock is held from one request to the next, and from one connection to the next.
///
/// It is made once a worker and passed down by reference, so that a request costs no allocation and no reference count.
struct Batch: ~Copyable {
  var output = ByteBuffer()
  /// Milliseconds of the clock that expiries are measured with, read once a wake-up.
  var now: UInt64 = 0
  /// How many bytes of output the connection may have waiting, beside its outbox.
  var room = 0
  /// What was counted since the worker was woken.
  var tally = Tally()
  /// What became of the request that is being handled: an `Outcome`.
  var outcome: UInt8 = 0
  let metrics: WorkerMetrics
  /// The store that was last held in this wake-up.
  var lastStore: Store?
  var limits: ServerLimits
  let maxValueSize: Int
  /// Bytes of a frame's body in an answer, past which a new frame begins.
  let frameBytes: Int
  /// What must be durable before the output may be sent.
  var gates: [Gate] = []
  /// Values that the answer at the output's end has room for, and that have to be read from files yet.
  var unread: [UnreadValue] = []
  /// The newest commit that the answer being made tells of, to someone who only reads.
  var shownRevision: UInt64 = 0
  /// The store that is held, and the bytes of requests that were handled meanwhile.
  private(set) var held: Store?
  var heldBytes = 0
  /// What `lookAhead` has found and not asked for yet.
  var ahead = InlineArray<16, EntryMap.Ahead>(repeating: EntryMap.Ahead())
  var aheadCount = 0

  /// In bytes.
  private static let maxMessageLength = 1_024
  /// Bytes of requests after which a store's lock is let go, though more of them wait.
  static let maxHeldBytes = 64 << 10
  /// How often a write is tried again for which a store's journal has to make room.
  static let maxWaits = 100

  init(limits: ServerLimits, metrics: WorkerMetrics) {
    self.limits = limits
    self.metrics = metrics
    maxValueSize = limits.maxValueBytes
    frameBytes = min(Answer.frameBytes, limits.maxFrameBytes - Frame.minLength)
  }

  /// Whether so much waits to be sent that no further request is taken up.
  @inline(__always)
  var isFull: Bool { output.count >= room }

  /// Takes a store's lock, unless it is held already. Whatever takes another's lock, or this one's, first lets go.
  @inline(__always)
  mutating func hold(_ store: Store) {
    if held === store { return }
    letGo()
    store.acquire()
    held = store
  }

  @inline(__always)
  mutating func letGo() {
    guard let store = held else { return }
    let mustWake = unsafe store.commitWriter != nil && store.map.hasCommits
    let waiters = unsafe store.map.hasNews ? store.map.takeChangeWaiters() : []
    store.release()
    lastStore = held.take()
    heldBytes = 0
    for waiter in waiters { waiter.storeHasChanged() }
    if mustWake { store.commitWriter?.wake() }
  }

  /// Counts a request that was handled.
  @inline(__always)
  mutating func count(_ operation: UInt8) {
    tally.count(operation)
    if outcome != 0 { countFailure(operation) }
  }

  @inline(never)
  private mutating func countFailure(_ operation: UInt8) {
    tally.countFailure(operation, outcome, metrics)
    outcome = 0
  }

  /// Notes that what was answered shows, or made, what is durable only with this commit.
  @inline(__always)
  mutating func gate(_ revision: UInt64, _ commitWriter: CommitWriter) {
    if !commitWriter.gatesReplies || commitWriter.isDurable(revision) { return }
    if let last = gates.indices.last, gates[last].commitWriter === commitWriter {
      gates[last].revision = max(gates[last].revision, revision)
    } else {
      gates.append(Gate(commitWriter: commitWriter, revision: revision))
    }
  }

  mutating func fail(_ code: ErrorCode, _ id: UInt32, _ message: String = "") {
    // Some messages repeat what the client sent, which may be as long as a frame and thrice that once it is made UTF-8.
    outcome = code.outcome.rawValue
    let isShort = message.utf8.count <= Self.maxMessageLength
    output.appendError(
      code, id: id, message: isShort ? message : String(message.prefix(Self.maxMessageLength / 4)) + " …")
  }
}
