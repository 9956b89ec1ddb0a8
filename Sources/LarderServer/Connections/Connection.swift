import Platform
import Storage
import Tokens
import Wire

/// One client's connection: what has been read and not executed, what waits to be sent, and what the client has open.
///
/// Owned by one worker's connection table. An idle connection has no buffers: whole frames are executed where the
/// worker read them, and only what is left over is kept here.
struct Connection: ~Copyable {
  let channel: ByteChannel
  let token: ConnectionToken
  /// What serves its requests.
  let session: any Session
  /// The number of the listener that accepted it.
  let listener: Int
  let figures: ConnectionFigures
  /// Who it counts as when the server's jobs and memory are shared.
  private let currentSharer: ConnectionSharer

  var phase = Phase.greeting
  /// The token by which the client has proved who it is; nil for none.
  var accessToken: TokenDigest?
  /// The session of a console whose rights the client has; nil for none.
  var consoleSession: ConsoleSession?
  /// What the client may do; nothing before the hello.
  var grants = Grants()
  /// What counts it as one of its principal's; nil if it has none.
  private var principalShare: PrincipalShare?
  var stores = OpenStores()
  var streams: [ReplyStream] = []
  var uploads = Uploads()
  /// The credit that each stream begins with, from the client's hello.
  var credit = 0
  /// What its codec keeps for the client; nil for nothing.
  let clientState: AnyObject?
  /// Whether the client waits for pushes, so that it may stay idle.
  var expectsPushes = false
  /// Whether pushes wait until the client has read what was sent before.
  var hasPushes = false
  /// Whether it has ever had a watch.
  var hasWatched = false

  var input: ConnectionInput
  /// What the channel did not accept yet.
  private(set) var outbox = Outbox()
  /// The size of the outbox from which on nothing is read or executed, in bytes.
  private var maxOutboxBytes: Int
  /// The large values in the outbox that its worker's `BufferAccounting` has recorded, in bytes.
  var accountedValueBytes = 0
  /// Replies that must not be sent before commits are durable.
  private var heldReplies = HeldReplies()
  /// Whether so many replies are held that nothing more is read.
  private var isBlockedByHeldReplies = false
  /// Whether its worker checks it when commits have become durable.
  private var isAwaitingDurability = false

  /// What its next request waits for.
  var waits = Waits()
  /// Whether nothing more is read before the stream has ended that the next request waits for, because enough input waits.
  private var isInputFull = false

  /// What the poll reports for it.
  private var interest: Poll.Interest
  /// Whether there may be more input than the last read brought, which the poll does not report again.
  private var mayHaveInput = false

  // In milliseconds, for the timeouts.
  private let opened: UInt64
  private var lastRead: UInt64
  /// When the frame at the beginning of the input began, without the time when the connection was not read.
  private var frameBegan: UInt64
  private var lastSent: UInt64

  private static let quietInterest: Poll.Interest = [.reading, .edgeTriggered]

  enum Phase {
    /// No hello has arrived.
    case greeting
    case open
    /// The client sends no more. It still gets its replies.
    case inputEnded
    /// The client has sent the request that it wanted to be its last one, and still gets its replies. What else it sends is
    /// thrown away.
    case lastRequest
    /// The last frame is in the outbox or sent. Nothing is executed any more.
    case closing
    /// Everything has been sent. The channel is shutting down its sending side.
    case endingOutput
    /// Everything has been sent. Input is discarded until the client closes the connection, so that it gets to read the
    /// last frame.
    case lingering
    /// The event loop will remove it from the table.
    case closed
  }

  init(
    _ channel: consuming ByteChannel, token: ConnectionToken, _ session: any Session, listener: Int,
    _ figures: ConnectionFigures, _ sharer: ConnectionSharer, input memory: consuming InputMemory,
    clientState: AnyObject?, now: UInt64
  ) {
    interest = Self.initialInterest(of: channel)
    self.channel = channel
    self.token = token
    self.session = session
    self.listener = listener
    self.figures = figures
    currentSharer = sharer
    self.clientState = clientState
    input = ConnectionInput(memory, session)
    maxOutboxBytes = session.keepsReplies ? Self.maxKeptReplyBytes : 1
    opened = now
    lastRead = now
    frameBegan = now
    lastSent = now
  }

  // MARK: State

  /// Who it counts as when the server's jobs and memory are shared.
  var sharer: Sharer { currentSharer.current }

  /// Whether the client has no right, because it has yet to prove who it is.
  @inline(__always)
  var isStranger: Bool { phase == .greeting || grants.isNothing }

  /// Counts it as one of its principal's, instead of another's. Call it when the client has its rights.
  /// - Returns: False if the principal has too many.
  mutating func countPrincipal(on server: ServerState, _ limits: borrowing ServerLimits) -> Bool {
    let principal = server.accessControl.auditClient(of: self).principal
    if !grants.isNothing {
      currentSharer.change(to: Sharer(figures.peer, provedAs: principal, connection: figures.number))
    }
    guard let principal else { return true }
    principalShare = nil
    principalShare = server.connectionCount.add(of: principal, limits)
    return principalShare != nil
  }

  /// Begins to serve a client that need not introduce itself.
  mutating func admit(_ grants: Grants) {
    self.grants = grants
    credit = ReplyStream.maxCredit
    if phase == .greeting { phase = .open }
  }

  /// Whether the client waits for the reply to a request, all of which may not have arrived.
  var awaitsReply: Bool { hasInput || waits.mustWait || waits.isDeferred || !streams.isEmpty }

  /// Begins to end it without another reply.
  mutating func endInSilence() { phase = .closing }

  /// Whether its requests are executed.
  var executes: Bool {
    switch phase {
    case .greeting, .open, .inputEnded: true
    case .lastRequest, .closing, .endingOutput, .lingering, .closed: false
    }
  }

  /// Executes nothing else, and ends the connection when the client has its replies.
  mutating func endAfterReply() {
    if phase == .open { phase = .lastRequest }
  }

  /// Whether the client gets replies that are yet to be made.
  var isServed: Bool { executes || phase == .lastRequest }

  /// Whether its channel is read.
  var reads: Bool {
    switch phase {
    case .greeting, .open, .lastRequest:
      acceptsReplies && !isBlockedByHeldReplies && !waits.isDeferred && !waits.isPaused && !isInputFull
    case .inputEnded, .closing, .endingOutput, .closed: false
    case .lingering: true
    }
  }

  /// Whether something can be sent as soon as the channel accepts it.
  private var sends: Bool { !outbox.isEmpty || (!waits.isPaused && streams.contains { $0.isReady }) }

  /// Whether it is in the state that most connections are in most of the time: polled for requests, with nothing left
  /// to do. Inlined, because a call copies the connection.
  @inline(__always)
  var isQuiet: Bool {
    phase == .open && outbox.isEmpty && heldReplies.isEmpty && streams.isEmpty && uploads.isEmpty && !mayHaveInput
      && !waits.isDeferred && !waits.isPaused && interest == Self.quietInterest && channel.isPlain
  }

  /// Whether credit can arrive, if the client sends it.
  var acceptsCredit: Bool { !waits.isPaused && !isInputFull }

  /// Whether its next request was deferred, and can be executed again at any time.
  var mustRetry: Bool { waits.isDeferred && executes && acceptsReplies }

  /// The size of the replies that wait for the client or for commits.
  @inline(__always)
  var waitingReplyBytes: Int { outbox.count + heldReplies.count }

  /// The size of further replies, in bytes, at which it has enough waiting to be sent, and none of its requests is executed
  /// any more.
  @inline(__always)
  func maxReplyBytes(_ limits: borrowing ServerLimits) -> Int {
    // More than that are made in slices, between which others are served.
    maxOutboxBytes > 1 ? limits.maxOutputBytes : limits.maxOutputBytes - waitingReplyBytes
  }

  /// Whether more requests are executed, although the client may have left replies unread.
  @inline(__always)
  var acceptsReplies: Bool { outbox.isEmpty || outbox.count < maxOutboxBytes }

  /// The maximum size of the replies that are kept for a client that sends all of its requests first, in bytes.
  private static let maxKeptReplyBytes = 32 << 20

  /// Sets how much is kept for the client to read.
  /// - Parameter areMany: Whether clients have left so much unread that no more is kept than for others.
  @inline(__always)
  mutating func limitKeptReplies(areMany: Bool) {
    guard session.keepsReplies else { return }
    maxOutboxBytes = areMany ? 1 : Self.maxKeptReplyBytes
  }

  var hasWaitingReplies: Bool { !outbox.isEmpty || !heldReplies.isEmpty }

  /// Since when the client has left replies unread, in milliseconds; nil if none are waiting.
  var stalledSince: UInt64? { outbox.isEmpty ? nil : lastSent }

  /// The timeout that runs for it; nil if none does.
  func timeout(_ limits: borrowing ServerLimits) -> ConnectionTimeout? {
    if phase == .lingering || phase == .endingOutput {
      let lastUse = min(max(lastSent, lastRead), lastSent + Self.maxDiscardMilliseconds)
      return ConnectionTimeout(.lingering, since: lastUse, milliseconds: ConnectionTimeout.lingerMilliseconds)
    }
    if let stalledSince { return ConnectionTimeout(.repliesUnread, since: stalledSince, limits.writeTimeout) }
    // It is not read.
    if waits.isPaused { return nil }
    switch phase {
    case .greeting: return ConnectionTimeout(.helloMissing, since: opened, limits.helloTimeout)
    case .open where grants.isNothing: return ConnectionTimeout(.helloMissing, since: opened, limits.helloTimeout)
    case .open where !heldReplies.isEmpty || waits.isDeferred || waits.isAwaitingStream: return nil
    case .open where hasInput:
      let stalled = ConnectionTimeout(.frameStalled, since: lastRead, limits.frameTimeout)
      let tooSlow = ConnectionTimeout(.frameTooSlow, since: frameBegan, limits.frameTime)
      return stalled.deadline < tooSlow.deadline ? stalled : tooSlow
    case .open where streams.isEmpty && !expectsPushes:
      return ConnectionTimeout(.idle, since: max(lastRead, lastSent), limits.idleTimeout)
    default: return nil
    }
  }

  // MARK: The poll

  /// What the poll reports for a connection at first.
  static func initialInterest(of channel: borrowing ByteChannel) -> Poll.Interest {
    channel.events.receiving.union(.edgeTriggered)
  }

  /// Notes that the client has ended its side, so that the poll will not report input again.
  mutating func inputWillEnd() { mayHaveInput = true }

  /// Notes that there may be input, because the connection ends without reading it. Until the client closes it, the
  /// input is discarded.
  mutating func inputWasLeft() { mayHaveInput = true }

  mutating func updateInterest(in poll: borrowing Poll) {
    guard phase != .closed else { return }
    var interest = channelEvents.interest(receives: reads || phase == .endingOutput, sends: sends)
    interest.insert(.edgeTriggered)
    // Events are edge-triggered: what is ready already is reported only after a change of interest.
    let isReady = (mayHaveInput && reads) || (outbox.isEmpty && sends) || outbox.hasSentSlice
    if interest != self.interest || isReady {
      mayHaveInput = false
      self.interest = interest
      poll.change(channel.socket.number, interest, token: token.number)
    }
  }

  // MARK: Reading

  /// Whether there is input that is not executed yet.
  var hasInput: Bool { !input.isEmpty }

  /// Whether it is read into its worker's batch.
  @inline(__always)
  var readsIntoBatch: Bool { !input.expectsMore && phase != .lingering && !waits.isAwaitingStream }

  /// The events that its channel waits for. While it lingers, its socket is read without the channel's layer.
  var channelEvents: ChannelEvents { phase == .lingering ? ChannelEvents() : channel.events }

  /// Whether it is to be read, and its channel holds input, which the poll does not report.
  var holdsUnreadInput: Bool { !channel.isPlain && phase != .lingering && reads && channel.holdsInput }

  /// Reads the channel into `room`.
  @unsafe @inline(__always)
  mutating func receive(into room: UnsafeMutableRawBufferPointer, now: UInt64) -> ChannelTransfer {
    let transfer = unsafe channel.receive(into: room)
    if case .moved(let count) = transfer, count > 0 { didReceive(count, fillsRoom: count == room.count, now: now) }
    return transfer
  }

  /// The maximum that is read into the input at a time before the client has proved who it is, in bytes.
  private static let maxStrangerReadBytes = 4 << 10

  /// Reads the channel into the input.
  mutating func receiveIntoInput(now: UInt64) throws(InputShortage) -> ChannelTransfer {
    if input.isEmpty { frameDidBegin(now: now) }
    let (transfer, fillsRoom) = try input.receive(from: channel, maxSize: isStranger ? Self.maxStrangerReadBytes : .max)
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

  /// The maximum time that input is discarded while it arrives, in milliseconds.
  private static let maxDiscardMilliseconds: UInt64 = 30_000

  /// Reads and discards input while the connection lingers, so that a client that sends all of a request first can read
  /// why it is refused. Closes it at the end of the input.
  /// - Returns: whether there was any.
  @unsafe
  mutating func discardInput(using room: UnsafeMutableRawBufferPointer, now: UInt64) -> Bool {
    switch unsafe channel.discard(using: room) {
    case .moved(0), .failed:
      phase = .closed
      return false
    case .moved(let count):
      if count == room.count { mayHaveInput = true }
      lastRead = now
      return true
    case .wouldBlock: return false
    }
  }

  // MARK: Sending

  /// Sends replies and empties their buffer. What the channel does not accept goes to the outbox, and so does what
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
    switch unsafe channel.send(replies.bytes.bytes) {
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

  /// Sends the outbox, because the channel may accept more.
  /// - Returns: the number of bytes that were sent.
  mutating func flushOutbox(now: UInt64) -> Int {
    guard !outbox.isEmpty else { return 0 }
    var sent = 0
    switch outbox.send(to: channel) {
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

  // MARK: Phases of the channel

  /// Ends the sending side after the last frame, and then waits for the client to close the connection.
  mutating func endOutput(now: UInt64) {
    if phase != .endingOutput { lastSent = now }
    switch channel.shutdownSending() {
    case .waiting: phase = .endingOutput
    case .done, .failed:
      phase = .lingering
      if !channel.isPlain { mayHaveInput = true }
      lastSent = now
    }
  }

  // MARK: Durability

  /// Whether replies must wait for commits, or for replies that do.
  @inline(__always)
  func mustHold(_ replies: borrowing ReplyBuffer) -> Bool { replies.hasGates || !heldReplies.isEmpty }

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
    for tag in heldReplies.release(into: &replies, session, notifying: waiter) {
      // A stream that has failed has no further parts.
      endStream(tag: tag)
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

  /// Begins a pause.
  /// - Parameter deadline: When it takes too long, in milliseconds.
  /// - Returns: What must be posted to the worker's mailbox when the wait is over.
  @discardableResult
  mutating func begin(_ pause: Pause, deadline: UInt64? = nil) -> PauseToken {
    let token = nextPauseToken
    waits.begin(pause, deadline: deadline)
    return token
  }

  /// The token of the pause that is begun next.
  var nextPauseToken: PauseToken { waits.nextToken(of: token) }

  /// Ends the pause. The connection was not read meanwhile, so its timeouts begin now.
  /// - Returns: What it has waited for; nil if it is not paused.
  mutating func endPause(now: UInt64) -> Pause? {
    guard let pause = waits.endPause() else { return nil }
    readingDidResume(now: now)
    for index in streams.indices { streams[index].restartTimeout(now: now) }
    return pause
  }

  // MARK: Waits for streams

  /// The size of the input that is read while a request waits for a stream, in bytes: it may have credit for other
  /// streams, and the stream may be canceled.
  private static let maxWaitingInputBytes = 256 << 10

  /// Stops reading while a request waits for a stream if enough input waits, or if there is no memory for more.
  mutating func limitWaitingInput(hasMemory: Bool = true) {
    if waits.isAwaitingStream, !hasMemory || input.byteCount >= Self.maxWaitingInputBytes { isInputFull = true }
  }

  /// Continues to read after the end of a stream. The time when the connection was not read is not the client's.
  mutating func resumeReading(now: UInt64) {
    guard isInputFull else { return }
    isInputFull = false
    readingDidResume(now: now)
    for index in streams.indices { streams[index].restartTimeout(now: now) }
  }

  // MARK: Streams

  /// The earliest time, in milliseconds, at which a stream ends for lack of credit; nil if none lacks it. Watches don't
  /// end.
  func creditDeadline(_ limits: borrowing ServerLimits) -> UInt64? {
    var earliest: UInt64?
    for stream in streams where stream.credit <= 0 && !stream.isWatch {
      earliest = min(earliest ?? .max, stream.lastSent + limits.streamTimeout.wholeMilliseconds)
    }
    return earliest
  }

  /// Gives its new jobs to the runner. Call it without a store's lock, because it may wake a thread.
  func startJobs(on runner: JobRunner) {
    for stream in streams { stream.runningJob?.start(on: runner) }
  }

  /// Opens a stream.
  mutating func open(_ stream: ReplyStream) {
    streams.append(stream)
    guard stream.isAwaited else { return }
    waits.awaitStream()
  }

  /// Whether it has a stream with a tag.
  func hasStream(_ tag: UInt32) -> Bool { streams.contains { $0.tag == tag } }

  /// The number of its jobs that have not ended.
  var runningJobCount: Int { streams.count { $0.runningJob != nil } }

  /// Ends a stream.
  /// - Returns: its tag.
  @discardableResult
  mutating func endStream(at index: Int) -> UInt32 {
    let stream = streams.remove(at: index)
    stream.end()
    if waits.isAwaitingStream, !streams.contains(where: \.isAwaited) { waits.streamDidEnd() }
    return stream.tag
  }

  /// Ends the stream with a tag, if there is one.
  mutating func endStream(tag: UInt32) {
    if let index = streams.firstIndex(where: { $0.tag == tag }) { endStream(at: index) }
  }

  mutating func endAllStreams() {
    for stream in streams { stream.end() }
    streams = []
    waits.streamDidEnd()
  }

  /// Makes watches look for changes again.
  /// - Parameter store: the store that has changed; nil for all.
  mutating func resumeWatches(of store: ObjectIdentifier?) {
    for index in streams.indices where store == nil || ObjectIdentifier(streams[index].store) == store {
      streams[index].resumeWatch()
    }
  }
}
