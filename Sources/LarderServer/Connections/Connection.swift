import Platform
import Storage
import Wire

/// One client's connection: what has been read and not executed, what waits to be sent, and what the client has open.
///
/// Owned by one worker's connection table. An idle connection has no buffers: whole frames are executed where the
/// worker read them, and only what is left over is kept here.
struct Connection: ~Copyable {
  let descriptor: Descriptor
  let token: ConnectionToken
  /// The number of the listener that accepted it.
  let listener: Int
  let figures: ConnectionFigures
  /// Who it counts as when the server's jobs and memory are shared.
  let sharer: Sharer

  var phase = Phase.greeting
  /// What the client may do; nothing before the hello.
  var grants = Grants()
  var stores = OpenStores()
  var streams: [ReplyStream] = []
  var uploads: [ValueUpload] = []
  /// The credit that each stream begins with, from the client's hello.
  var credit = 0
  /// Whether its next request, in the input, must be executed again: see `RequestResult.isDeferred`.
  var isDeferred = false
  /// Whether it has ever had a watch.
  var hasWatched = false

  var input: ConnectionInput
  /// What the socket did not accept yet.
  private(set) var outbox = Outbox()
  /// The large values in the outbox that its worker's `BufferAccounting` has recorded, in bytes.
  var accountedValueBytes = 0
  /// Replies that must not be sent before commits are durable.
  private var heldReplies = HeldReplies()
  /// Whether so many replies are held that nothing more is read.
  private var isBlockedByHeldReplies = false
  /// Whether its worker checks it when commits have become durable.
  private var isAwaitingDurability = false

  /// Whether its next request waits: for the end of a pause, or of a change.
  private(set) var mustWait = false
  /// Whether its next request waits until a job has changed entries. Unlike a pause, it is read meanwhile, and its reply
  /// streams go on.
  private(set) var isAwaitingChange = false
  /// Whether nothing more is read before the change, because enough input waits.
  private var isInputFull = false
  /// What it waits for before any more of its requests are executed; nil if it need not wait.
  private var pause: Pause?
  /// The number of pauses so far.
  private var pauseCount: UInt32 = 0
  /// When the pause takes too long, in milliseconds; nil if it may take any time.
  private(set) var pauseDeadline: UInt64?
  /// The job that has executed its next request, whose reply has yet to be made; nil if there is none.
  var endedWrite: WriteJob?
  /// How many times its next request has waited for space.
  var spaceWaitCount = 0

  /// What the poll reports for it.
  private var interest = Connection.initialInterest
  /// Whether there may be more input than the last read brought, which the poll does not report again.
  private var mayHaveInput = false

  // In milliseconds, for the timeouts.
  private let opened: UInt64
  private var lastRead: UInt64
  /// When the frame at the beginning of the input began, without the time when the connection was not read.
  private var frameBegan: UInt64
  private var lastSent: UInt64

  static let initialInterest: Poll.Interest = [.reading, .edgeTriggered]

  enum Phase {
    /// No hello has arrived.
    case greeting
    case open
    /// The client sends no more. It still gets its replies.
    case inputEnded
    /// The last frame is in the outbox or sent. Nothing is executed any more.
    case closing
    /// Everything has been sent. Input is discarded until the client closes the connection, so that it gets to read the
    /// last frame.
    case lingering
    /// The event loop will remove it from the table.
    case closed
  }

  init(
    _ descriptor: consuming Descriptor, token: ConnectionToken, listener: Int, _ figures: ConnectionFigures,
    _ sharer: Sharer, input memory: consuming InputMemory, now: UInt64
  ) {
    self.descriptor = descriptor
    self.token = token
    self.listener = listener
    self.figures = figures
    self.sharer = sharer
    input = ConnectionInput(memory)
    opened = now
    lastRead = now
    frameBegan = now
    lastSent = now
  }

  // MARK: State

  /// Whether its requests are executed.
  var executes: Bool {
    switch phase {
    case .greeting, .open, .inputEnded: true
    case .closing, .lingering, .closed: false
    }
  }

  /// Whether its socket is read.
  var reads: Bool {
    switch phase {
    case .greeting, .open: outbox.isEmpty && !isBlockedByHeldReplies && !isDeferred && !isPaused && !isInputFull
    case .inputEnded, .closing, .closed: false
    case .lingering: true
    }
  }

  /// Whether something can be sent as soon as the socket accepts it.
  private var sends: Bool { !outbox.isEmpty || (!isPaused && streams.contains { $0.isReady }) }

  /// Whether it is in the state that most connections are in most of the time: polled for requests, with nothing left
  /// to do. Inlined, because a call copies the connection.
  @inline(__always)
  var isQuiet: Bool {
    phase == .open && outbox.isEmpty && heldReplies.isEmpty && streams.isEmpty && uploads.isEmpty && !mayHaveInput
      && !isDeferred && !isPaused && interest == Self.initialInterest
  }

  /// Whether credit can arrive, if the client sends it.
  var acceptsCredit: Bool { !isPaused && !isInputFull }

  /// Whether its next request was deferred, and can be executed again at any time.
  var mustRetry: Bool { isDeferred && executes && outbox.isEmpty }

  /// The size of the replies that wait for the client or for commits.
  @inline(__always)
  var waitingReplyBytes: Int { outbox.count + heldReplies.count }

  var hasWaitingReplies: Bool { !outbox.isEmpty || !heldReplies.isEmpty }

  /// Since when the client has left replies unread, in milliseconds; nil if none are waiting.
  var stalledSince: UInt64? { outbox.isEmpty ? nil : lastSent }

  /// The timeout that runs for it; nil if none does.
  func timeout(_ limits: borrowing ServerLimits) -> ConnectionTimeout? {
    if phase == .lingering {
      return ConnectionTimeout(.lingering, since: lastSent, milliseconds: ConnectionTimeout.lingerMilliseconds)
    }
    if let stalledSince { return ConnectionTimeout(.repliesUnread, since: stalledSince, limits.writeTimeout) }
    // It is not read.
    if isPaused { return nil }
    switch phase {
    case .greeting: return ConnectionTimeout(.helloMissing, since: opened, limits.helloTimeout)
    case .open where !heldReplies.isEmpty || isDeferred || isAwaitingChange: return nil
    case .open where hasInput:
      let stalled = ConnectionTimeout(.frameStalled, since: lastRead, limits.frameTimeout)
      let tooSlow = ConnectionTimeout(.frameTooSlow, since: frameBegan, limits.frameTime)
      return stalled.deadline < tooSlow.deadline ? stalled : tooSlow
    case .open where streams.isEmpty:
      return ConnectionTimeout(.idle, since: max(lastRead, lastSent), limits.idleTimeout)
    default: return nil
    }
  }

  // MARK: The poll

  /// Notes that the client has ended its side, so that the poll will not report input again.
  mutating func inputWillEnd() { mayHaveInput = true }

  /// Notes that there may be input, because the connection ends without reading it. Until the client closes it, the
  /// input is discarded.
  mutating func inputWasLeft() { mayHaveInput = true }

  mutating func updateInterest(in poll: borrowing Poll) {
    guard phase != .closed else { return }
    var interest: Poll.Interest = reads ? .reading : []
    if sends { interest.insert(.writing) }
    interest.insert(.edgeTriggered)
    // Events are edge-triggered: what is ready already is reported only after a change of interest.
    let isReady = (mayHaveInput && reads) || (outbox.isEmpty && sends) || outbox.hasSentSlice
    if interest != self.interest || isReady {
      mayHaveInput = false
      self.interest = interest
      poll.change(descriptor.number, interest, token: token.number)
    }
  }

  // MARK: Reading

  /// Whether there is input that is not executed yet.
  var hasInput: Bool { !input.isEmpty }

  /// Whether it is read into its worker's batch.
  @inline(__always)
  var readsIntoBatch: Bool { !input.expectsMore && phase != .lingering && !isAwaitingChange }

  /// Reads the socket into `room`.
  @unsafe @inline(__always)
  mutating func receive(into room: UnsafeMutableRawBufferPointer, now: UInt64) -> Transfer {
    let transfer = unsafe descriptor.receive(into: room)
    if case .moved(let count) = transfer, count > 0 { didReceive(count, fillsRoom: count == room.count, now: now) }
    return transfer
  }

  /// Reads the socket into the input.
  mutating func receiveIntoInput(now: UInt64) throws(InputShortage) -> Transfer {
    if input.isEmpty { frameDidBegin(now: now) }
    let (transfer, fillsRoom) = try input.receive(from: descriptor)
    if case .moved(let count) = transfer, count > 0 { didReceive(count, fillsRoom: fillsRoom, now: now) }
    return transfer
  }

  @inline(__always)
  private mutating func didReceive(_ byteCount: Int, fillsRoom: Bool, now: UInt64) {
    figures.receivedBytes.increment(by: byteCount)
    lastRead = now
    if fillsRoom { mayHaveInput = true }
  }

  /// Notes that the input begins with another frame than before.
  mutating func frameDidBegin(now: UInt64) { frameBegan = now }

  /// Notes that the connection is read again. The time when it was not read is not the client's.
  private mutating func readingDidResume(now: UInt64) {
    lastRead = now
    frameBegan = now
  }

  /// Reads and discards input while the connection lingers. Closes it at the end of the input.
  /// - Returns: whether there was any.
  @unsafe
  mutating func discardInput(using room: UnsafeMutableRawBufferPointer) -> Bool {
    switch unsafe descriptor.receive(into: room) {
    case .moved(0), .failed:
      phase = .closed
      return false
    case .moved(let count):
      if count == room.count { mayHaveInput = true }
      return true
    case .wouldBlock: return false
    }
  }

  // MARK: Sending

  /// Sends replies and empties their buffer. What the socket does not accept goes to the outbox, and so does what
  /// exceeds a slice.
  /// - Returns: the number of bytes that were sent, and of those that were added to the outbox.
  mutating func send(_ replies: inout ReplyBuffer, now: UInt64) -> (sent: Int, queued: Int) {
    guard outbox.isEmpty, phase != .closed else { return (0, queue(&replies)) }
    lastSent = now
    guard !replies.hasAttachedValues, replies.count <= Outbox.maxSliceBytes else {
      let byteCount = queue(&replies)
      let sent = flushOutbox(now: now)
      return (sent, byteCount - sent)
    }
    var sent = 0
    switch unsafe descriptor.send(replies.bytes.bytes) {
    case .moved(let count):
      sent = count
      figures.sentBytes.increment(by: count)
      replies.bytes.consume(count)
    case .wouldBlock: break
    case .failed: phase = .closed
    }
    return (sent, queue(&replies))
  }

  /// Moves replies to the outbox.
  /// - Returns: the number of bytes that were added.
  @inline(__always)
  private mutating func queue(_ replies: inout ReplyBuffer) -> Int {
    let byteCount = replies.count
    if byteCount == 0 { return 0 }
    outbox.append(&replies)
    return byteCount
  }

  /// Sends the outbox, because the socket may accept more.
  /// - Returns: the number of bytes that were sent.
  mutating func flushOutbox(now: UInt64) -> Int {
    guard !outbox.isEmpty else { return 0 }
    var sent = 0
    switch outbox.send(to: descriptor) {
    case .moved(let count):
      sent = count
      figures.sentBytes.increment(by: count)
      lastSent = now
    case .wouldBlock: break
    case .failed: phase = .closed
    }
    if outbox.isEmpty { readingDidResume(now: now) }
    return sent
  }

  /// Ends the sending side after the last frame, and waits for the client to close the connection.
  mutating func beginLingering(now: UInt64) {
    descriptor.shutdownSending()
    phase = .lingering
    lastSent = now
  }

  // MARK: Durability

  /// Whether replies must wait for commits, or for replies that do.
  @inline(__always)
  func mustHold(_ replies: borrowing ReplyBuffer) -> Bool { !replies.requiredCommits.isEmpty || !heldReplies.isEmpty }

  /// Whether an earlier reply shows a commit that is not durable, or a stream is going to.
  func showsUndurableCommits(_ replies: borrowing ReplyBuffer) -> Bool {
    mustHold(replies) || streams.contains { $0.showsUndurableCommits }
  }

  /// Puts replies behind those that wait for commits, and takes back what need not wait any more.
  /// - Parameters:
  ///   - maxHeldBytes: the size of held replies at which nothing more is read.
  ///   - waiter: what is notified when more of them need not wait.
  /// - Returns: whether the connection begins to wait for commits.
  mutating func holdUntilDurable(
    _ replies: inout ReplyBuffer, maxHeldBytes: Int, notifying waiter: any DurabilityWaiter
  ) -> Bool {
    heldReplies.hold(&replies)
    for id in heldReplies.release(into: &replies, notifying: waiter) {
      // A stream that has failed has no further frames.
      endStream(id: id)
    }
    isBlockedByHeldReplies = heldReplies.count >= maxHeldBytes
    guard !heldReplies.isEmpty, !isAwaitingDurability else { return false }
    isAwaitingDurability = true
    return true
  }

  /// Notes that its worker checks its held replies now.
  mutating func endWaitForDurability(now: UInt64) {
    isAwaitingDurability = false
    if isBlockedByHeldReplies { readingDidResume(now: now) }
  }

  // MARK: Pauses

  /// Whether it waits before any more of its requests are executed.
  @inline(__always)
  var isPaused: Bool { pause != nil }

  /// The token of the pause that is begun next.
  var nextPauseToken: PauseToken { PauseToken(connection: token, number: pauseCount &+ 1) }

  /// The large write that it waits for; nil if there is none.
  var pausedWrite: WriteJob? { if case .write(let job)? = pause { job } else { nil } }

  /// Whether this pause has not ended.
  func isPaused(as token: PauseToken) -> Bool { isPaused && pauseCount == token.number }

  /// Begins a pause.
  /// - Parameter deadline: when it takes too long, in milliseconds.
  mutating func begin(_ pause: Pause, deadline: UInt64? = nil) -> PauseToken {
    precondition(!isPaused, "a paused connection executes nothing")
    let token = nextPauseToken
    pauseCount = token.number
    self.pause = pause
    mustWait = true
    pauseDeadline = deadline
    return token
  }

  /// Ends the pause. The connection was not read meanwhile, so its timeouts begin now.
  /// - Returns: what it has waited for; nil if it is not paused.
  mutating func endPause(now: UInt64) -> Pause? {
    guard let pause = pause.take() else { return nil }
    mustWait = isAwaitingChange
    pauseDeadline = nil
    readingDidResume(now: now)
    for index in streams.indices { streams[index].restartTimeout(now: now) }
    return pause
  }

  // MARK: Changes by jobs

  /// The size of the input that is read before a change, in bytes: it may have credit for other streams, and the change
  /// may be canceled.
  private static let maxWaitingInputBytes = 256 << 10

  /// Begins to wait until the job of the newest stream has changed entries.
  mutating func awaitChange() {
    isAwaitingChange = true
    mustWait = true
  }

  /// Stops reading before the change if enough input waits, or if there is no memory for more.
  mutating func limitWaitingInput(hasMemory: Bool = true) {
    if isAwaitingChange, !hasMemory || input.byteCount >= Self.maxWaitingInputBytes { isInputFull = true }
  }

  /// Continues to read after a change. The time when the connection was not read is not the client's.
  mutating func resumeReading(now: UInt64) {
    guard isInputFull else { return }
    isInputFull = false
    readingDidResume(now: now)
    for index in streams.indices { streams[index].restartTimeout(now: now) }
  }

  // MARK: Streams

  /// Ends a stream.
  /// - Returns: its id.
  @discardableResult
  mutating func endStream(at index: Int) -> UInt32 {
    let stream = streams.remove(at: index)
    stream.end()
    if isAwaitingChange, !streams.contains(where: { $0.changesEntries }) { endChange() }
    return stream.id
  }

  /// Ends the stream with an id, if there is one.
  /// - Returns: whether there was one.
  @discardableResult
  mutating func endStream(id: UInt32) -> Bool {
    guard let index = streams.firstIndex(where: { $0.id == id }) else { return false }
    endStream(at: index)
    return true
  }

  mutating func endAllStreams() {
    for stream in streams { stream.end() }
    streams = []
    endChange()
  }

  private mutating func endChange() {
    isAwaitingChange = false
    mustWait = isPaused
  }

  /// Makes watches look for changes again.
  /// - Parameter store: the store that has changed; nil for all.
  mutating func resumeWatches(of store: ObjectIdentifier?) {
    for index in streams.indices where store == nil || ObjectIdentifier(streams[index].store) == store {
      streams[index].resumeWatch()
    }
  }
}
