import Basics
import Platform
import Wire

/// Serves one connection at a time: reads, has the batch handle what came, sends what it wrote.
///
/// A wake-up is one read and one write. Whatever does not fit is kept in the connection, and the poll is told what to wait for.
struct Service: ~Copyable {
  let server: ServerState
  let poll: Poll
  var batch: Batch
  var turn = Turn()
  /// When the timers are next looked at, in milliseconds; `UInt64.max` when nothing runs.
  var nextSweep = UInt64.max
  /// When the server stops: until when open answers may go on, in milliseconds.
  private(set) var drainDeadline: UInt64?
  /// Bytes that the inboxes of this worker's connections take.
  private var inputBytes = 0
  /// Bytes that wait in the outboxes of this worker's connections.
  private var queuedBytes = 0
  /// Connections that have output at gates.
  var waitingAtGates: [ConnectionToken] = []
  /// How long a wake-up takes at least that is put into the slow log.
  var slowNanoseconds: UInt64
  /// Whether no worker executes anything any more, since before the last sweep: then a watch that is at its end has told everything.
  var watchesMayEnd = false
  /// Those who wait for changes, by store.
  var watchers: [ObjectIdentifier: Watchers] = [:]
  let mailbox: Mailbox

  init(_ server: ServerState, _ metrics: WorkerMetrics, _ mailbox: Mailbox, _ poll: consuming Poll) {
    self.server = server
    self.mailbox = mailbox
    slowNanoseconds = server.limits.slow.wholeMilliseconds * 1_000_000
    self.poll = poll
    batch = Batch(limits: server.limits, metrics: metrics)
  }

  mutating func sweepNoLater(than time: UInt64) {
    nextSweep = min(nextSweep, time)
  }

  mutating func beginDrain() {
    drainDeadline = batch.now + batch.limits.shutdownTimeout.wholeMilliseconds
    server.drainingWorkers.add(1, ordering: .releasing)
    // Watches have to see that all workers are at this point.
    sweepNoLater(than: batch.now)
  }

  /// Notes how long the requests of a wake-up have taken.
  @inline(__always)
  mutating func endWakeUp(begun: UInt64) {
    guard batch.tally.requests > 0 else { return batch.tally.pourBytes(into: batch.metrics) }
    let nanoseconds = monotonicNanoseconds() &- begun
    batch.metrics.add(1, to: .wakeUps)
    if nanoseconds >= slowNanoseconds { noteSlow(nanoseconds) }
    batch.tally.pour(into: batch.metrics, nanoseconds: nanoseconds)
    batch.lastStore = nil
  }

  private func noteSlow(_ nanoseconds: UInt64) {
    batch.metrics.add(1, to: .slowWakeUps)
    let entry = SlowLog.Entry(
      ended: monotonicMilliseconds(), nanoseconds: nanoseconds, requests: UInt32(clamping: batch.tally.requests),
      receivedBytes: batch.tally.receivedBytes, operations: batch.tally.operations,
      store: batch.lastStore?.name.text ?? "")
    server.slowLog.withLock { $0.note(entry) }
  }

  /// Whether this worker's connections have more waiting than its share. Each worker looks to its own, for it can drop no others.
  var hasTooMuchOutput: Bool { queuedBytes > server.outputShareBytes }

  /// Notes that so many more bytes wait in a connection's outbox; fewer when negative.
  mutating func noteQueued(_ byteCount: Int, for connection: borrowing Connection) {
    connection.figures.waitingBytes.store(UInt64(connection.outbox.count), ordering: .relaxed)
    queuedBytes += byteCount
    server.outputBytes.add(byteCount, ordering: .relaxed)
  }

  /// Notes how much room the connection's inbox takes now.
  @inline(__always)
  mutating func noteInput(of connection: inout Connection) {
    let capacity = connection.inbox.capacity
    guard capacity != connection.notedInput else { return }
    inputBytes += capacity - connection.notedInput
    server.inputBytes.add(capacity - connection.notedInput, ordering: .relaxed)
    connection.notedInput = capacity
  }

  /// Lets go of all that a connection holds outside of itself.
  mutating func finish(_ connection: inout Connection) {
    connection.endAnswers()
    forgetWatcher(connection)
    server.registry.remove(connection.figures)
    noteQueued(-connection.outbox.count, for: connection)
    inputBytes -= connection.notedInput
    server.inputBytes.subtract(connection.notedInput, ordering: .relaxed)
    poll.remove(connection.descriptor.number)
    server.connections.subtract(1, ordering: .relaxed)
  }

  // MARK: Reading

  /// Does what an event tells to do, but for executing what came: that waits in the turn, with what came from others.
  @inline(__always)
  mutating func receive(_ event: Poll.Event, _ connection: inout Connection) {
    if event.endsSending { connection.hasUnread = true }
    if event.writable { flush(&connection) }
    if event.readable, connection.reads {
      if connection.inbox.isEmpty, connection.phase != .lingering {
        readIntoTurn(&connection)
      } else {
        read(&connection)
      }
    } else if event.hungUp {
      // Nobody is left to send to, and what has come is dealt with or can't be answered.
      connection.phase = .closed
    }
  }

  /// - Returns: whether anything came.
  @inline(__always) @discardableResult
  private mutating func readIntoTurn(_ connection: inout Connection) -> Bool {
    let transfer = unsafe connection.descriptor.receive(into: turn.room)
    guard case .moved(let count) = transfer, count > 0 else {
      endInput(of: &connection, transfer)
      return false
    }
    noteReceived(count, from: connection)
    connection.lastRead = batch.now
    if count == Turn.inputBytes { connection.hasUnread = true }
    turn.add(connection.token, byteCount: count)
    return true
  }

  @inline(__always)
  private mutating func noteReceived(_ byteCount: Int, from connection: borrowing Connection) {
    batch.tally.receivedBytes &+= UInt64(byteCount)
    connection.figures.receivedBytes.count(byteCount)
  }

  /// Reads and handles what came, at once.
  /// - Precondition: no other connection waits in the turn, unless this one has an inbox.
  /// - Returns: whether anything came.
  @discardableResult
  mutating func read(_ connection: inout Connection) -> Bool {
    if connection.phase == .lingering { return discard(&connection) }
    guard connection.inbox.isEmpty else { return readBehindInbox(&connection) }
    guard readIntoTurn(&connection) else { return false }
    let index = turn.count - 1
    execute(index, &connection)
    batch.letGo()
    answer(index, &connection)
    turn.removeLast()
    return true
  }

  private mutating func readBehindInbox(_ connection: inout Connection) -> Bool {
    if inputBytes > server.inputShareBytes {
      batch.endConnection(&connection, .tooManyRequests, "the server has too many requests that have not come whole")
      connection.inbox.releaseStorage()
      settle(&connection)
      return false
    }
    // Room grows with what has come, not with what a frame says is to come.
    let room = max(Turn.inputBytes, connection.inbox.count)
    let transfer = connection.fillInbox(atMost: room)
    guard case .moved(let count) = transfer, count > 0 else {
      endInput(of: &connection, transfer)
      return false
    }
    noteReceived(count, from: connection)
    connection.lastRead = batch.now
    if count == room { connection.hasUnread = true }
    handleInbox(&connection)
    settle(&connection)
    return true
  }

  /// A read brought nothing.
  private mutating func endInput(of connection: inout Connection, _ transfer: Transfer) {
    switch transfer {
    case .moved:
      connection.phase = .inputEnded
      connection.inbox.releaseStorage()
      settle(&connection)
    case .wouldBlock: break
    case .failed: connection.phase = .closed
    }
  }

  // MARK: Executing

  /// Looks at what came from a connection, so that the memory that it needs is there when it is executed.
  @inline(__always)
  mutating func lookAhead(_ index: Int, _ connection: inout Connection) {
    turn[index].lookedAt = unsafe batch.lookAhead(RawSpan(_unsafeBytes: turn.bytes(index)), of: connection)
  }

  /// Executes what came from a connection. Its answers wait in the turn, and a store may be held.
  @inline(__always)
  mutating func execute(_ index: Int, _ connection: inout Connection) {
    swap(&batch.output, &turn[index].output)
    let bytes = unsafe RawSpan(_unsafeBytes: turn.bytes(index))
    let consumed = batch.handle(bytes, of: &connection, server, lookedAt: turn[index].lookedAt)
    if consumed < bytes.byteCount { keep(bytes.extracting(consumed..<bytes.byteCount), for: &connection) }
    swap(&batch.output, &turn[index].output)
    swap(&batch.gates, &turn[index].gates)
  }

  /// Sends what was executed for a connection.
  @inline(__always)
  mutating func answer(_ index: Int, _ connection: inout Connection) {
    swap(&batch.output, &turn[index].output)
    swap(&batch.gates, &turn[index].gates)
    settle(&connection)
    swap(&batch.output, &turn[index].output)
  }

  /// Reads until nothing is left, bounded, for a client may send faster than it is read.
  mutating func readToTheEnd(_ connection: inout Connection) {
    for _ in 0..<256 where connection.executes && connection.reads {
      guard read(&connection) else { return }
    }
  }

  private func discard(_ connection: inout Connection) -> Bool {
    switch unsafe connection.descriptor.receive(into: turn.room) {
    case .moved(0), .failed:
      connection.phase = .closed
      return false
    case .moved(let count):
      if count == Turn.inputBytes { connection.hasUnread = true }
      return true
    case .wouldBlock: return false
    }
  }

  private mutating func keep(_ rest: RawSpan, for connection: inout Connection) {
    connection.inbox.append(rest)
    sweepNoLater(than: batch.now + batch.limits.frameTimeout.wholeMilliseconds)
  }

  mutating func handleInbox(_ connection: inout Connection) {
    var inbox = ByteBuffer()
    swap(&inbox, &connection.inbox)
    let consumed = inbox.withSpan { batch.handle($0, of: &connection, server) }
    batch.letGo()
    inbox.consume(consumed)
    guard !inbox.isEmpty else { return }
    // What is left of a large frame's room is given back, so that a small rest doesn't hold it.
    if inbox.capacity > 16 * (inbox.count + Turn.inputBytes) {
      unsafe connection.inbox.append(inbox.bytes)
    } else {
      swap(&inbox, &connection.inbox)
    }
  }
}

extension Connection {
  /// Reads into the inbox.
  fileprivate mutating func fillInbox(atMost byteCount: Int) -> Transfer {
    guard inbox.tryReserve(byteCount) else { return .failed(SystemError("malloc")) }
    return unsafe inbox.fill(byteCount) { room in
      let transfer = unsafe descriptor.receive(into: room)
      if case .moved(let count) = transfer { return (count, transfer) }
      return (0, transfer)
    }
  }
}
