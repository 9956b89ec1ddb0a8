import Platform
import Storage
import Wire

/// One client's connection: what has been read and not executed, what waits to be sent, and what the client has open.
///
/// Owned by one worker's connection table. An idle connection has no buffers: whole frames are executed where the worker read them, and only
/// what is left over is kept here.
struct Connection: ~Copyable {
  let descriptor: Descriptor
  let token: ConnectionToken
  /// The number of the listener that it was accepted by.
  let listener: Int
  let figures: ConnectionFigures

  var phase = Phase.greeting
  /// What the client may do; nothing before the hello.
  var grants = Grants()
  var stores = OpenStores()
  var streams: [ReplyStream] = []
  /// The credit that each stream begins with, from the client's hello.
  var credit = 0
  /// Whether it has ever had a watch.
  var hasWatched = false

  /// The beginning of an incomplete frame, or frames that wait until the client reads its replies.
  var inbox = ByteBuffer()
  /// The storage of the inbox that its worker's `BufferAccounting` has recorded.
  var accountedInboxBytes = 0
  /// What the socket did not accept yet.
  var outbox = ByteBuffer()
  /// Replies that must not be sent before commits are durable.
  var heldReplies = HeldReplies()
  /// Whether so many replies are held that nothing more is read.
  var isBlockedByHeldReplies = false
  /// Whether its worker checks it when commits have become durable.
  var isAwaitingDurability = false

  /// What the poll reports for it.
  var interest = Connection.initialInterest
  /// Whether there may be more input than the last read brought, which the poll does not report again.
  var mayHaveInput = false

  // In milliseconds, for the timeouts.
  let opened: UInt64
  var lastRead: UInt64
  var lastSent: UInt64

  static let initialInterest: Poll.Interest = [.reading, .changes]

  enum Phase {
    /// No hello has arrived.
    case greeting
    case open
    /// The client sends no more. It still gets its replies.
    case inputEnded
    /// The last frame is in the outbox or sent. Nothing is executed any more.
    case closing
    /// Everything has been sent. Input is discarded until the client closes the connection, so that it gets to read the last frame.
    case lingering
    /// The event loop will remove it from the table.
    case closed
  }

  init(
    _ descriptor: consuming Descriptor, token: ConnectionToken, listener: Int, _ figures: ConnectionFigures, now: UInt64
  ) {
    self.descriptor = descriptor
    self.token = token
    self.listener = listener
    self.figures = figures
    opened = now
    lastRead = now
    lastSent = now
  }

  // MARK: Phases

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
    case .greeting, .open: outbox.isEmpty && !isBlockedByHeldReplies
    case .inputEnded, .closing, .closed: false
    case .lingering: true
    }
  }

  /// Whether something can be sent as soon as the socket accepts it.
  var sends: Bool { !outbox.isEmpty || streams.contains { $0.isReady } }

  /// Whether it is in the state that most connections are in most of the time: polled for requests, with nothing left to do.
  var isQuiet: Bool {
    phase == .open && outbox.isEmpty && heldReplies.isEmpty && streams.isEmpty && !mayHaveInput
      && interest == Self.initialInterest
  }

  /// Since when the client has left replies unread, in milliseconds; nil if none are waiting.
  var stalledSince: UInt64? { outbox.isEmpty ? nil : lastSent }

  // MARK: Streams

  /// Ends a stream.
  /// - Returns: its id.
  @discardableResult
  mutating func endStream(at index: Int) -> UInt32 {
    let stream = streams.remove(at: index)
    stream.end()
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
  }

  /// Makes watches look for changes again.
  /// - Parameter store: the store that has changed; nil for all.
  mutating func resumeWatches(of store: ObjectIdentifier?) {
    for index in streams.indices where store == nil || ObjectIdentifier(streams[index].store) == store {
      streams[index].resumeWatch()
    }
  }
}

/// The stores that a connection has open, by handle: `Protocol/wire.md` §6.3. Handles begin at 1.
struct OpenStores {
  struct Opened {
    let store: Store
    /// The operations on entries that the connection may execute on it.
    fileprivate(set) var permitted: OperationSet
  }

  private var stores: [Opened?] = []

  @inline(__always)
  subscript(handle: UInt16) -> Opened? {
    let index = Int(handle) &- 1
    return index >= 0 && index < stores.count ? stores[index] : nil
  }

  /// Opens a store under the handle that its name has already, or else under the lowest free one.
  /// - Returns: nil if `limit` stores are open.
  mutating func open(_ store: Store, permitting right: Right, limit: Int) -> UInt16? {
    let opened = Opened(store: store, permitted: OperationSet(right))
    if let index = stores.firstIndex(where: { $0?.store.name == store.name }) {
      stores[index] = opened
      return UInt16(index + 1)
    }
    if let free = stores.firstIndex(where: { $0 == nil }) {
      stores[free] = opened
      return UInt16(free + 1)
    }
    guard stores.count < limit else { return nil }
    stores.append(opened)
    return UInt16(stores.count)
  }

  /// Frees an open handle.
  mutating func close(_ handle: UInt16) {
    stores[Int(handle) - 1] = nil
  }

  /// Permits exactly what the grants give.
  mutating func permit(_ grants: Grants) {
    for (index, opened) in stores.enumerated() {
      guard let store = opened?.store else { continue }
      stores[index]?.permitted = OperationSet(grants.right(on: store.name))
    }
  }
}
