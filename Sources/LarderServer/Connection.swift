import Platform
import Storage
import Wire

/// One client's connection: what has been read and not handled, what waits to be sent, the stores and answers it has open.
///
/// Owned by one worker's connection table. An idle connection holds no buffers: whole frames are handled where the worker read them, and only
/// what is left over is kept here.
struct Connection: ~Copyable {
  let descriptor: Descriptor
  let token: ConnectionToken
  /// The number of the socket that it came by.
  let listener: Int
  let figures: ConnectionFigures

  /// The beginning of a frame that has not come whole, or frames that wait until the client reads its answers.
  var inbox = ByteBuffer()
  /// How much room of the inbox its worker has counted.
  var notedInput = 0
  /// What the socket did not take yet.
  var outbox = ByteBuffer()
  /// What may not be sent before it is durable.
  var gated = GatedOutput()
  /// Whether so much waits in `gated` that nothing more is read.
  var isHeldUp = false
  /// Whether its worker looks after it when a journal has moved.
  var isWaitingAtGates = false
  /// What it may do; nothing before the hello.
  var grants = Grants()
  var stores = OpenStores()
  var answers: [Answer] = []
  /// Whether it has ever had a watch.
  var hasWatched = false

  var phase = Phase.greeting
  /// What the poll tells of it.
  var interest = Connection.initialInterest
  /// Whether there may be more to be read than was read at last, of which the poll won't tell by itself.
  var hasUnread = false
  /// The credit that each answer starts with, from the client's hello.
  var credit = 0

  // Milliseconds, for the timers.
  let opened: UInt64
  var lastRead: UInt64
  var lastSent: UInt64

  static let initialInterest: Poll.Interest = [.reading, .changes]

  enum Phase {
    /// No hello yet.
    case greeting
    case open
    /// The client sends no more; it still gets its answers.
    case inputEnded
    /// The last frame is in the outbox or sent; nothing is executed any more.
    case closing
    /// All is sent. What still comes is thrown away until the client closes, so that it gets to read the last frame.
    case lingering
    /// Done with: the event loop takes it off the table.
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

  mutating func endAnswers() {
    for answer in answers { answer.end() }
    answers = []
  }

  /// Whether requests that have come may be executed.
  var executes: Bool {
    switch phase {
    case .greeting, .open, .inputEnded: true
    case .closing, .lingering, .closed: false
    }
  }

  /// Whether more is to be read from the socket.
  var reads: Bool {
    switch phase {
    case .greeting, .open: outbox.isEmpty && !isHeldUp
    case .inputEnded, .closing, .closed: false
    case .lingering: true
    }
  }

  /// Whether it is as most connections are all the time: watched for requests, and with nothing left to do.
  var isQuiet: Bool {
    phase == .open && outbox.isEmpty && gated.isEmpty && answers.isEmpty && !hasUnread
      && interest == Self.initialInterest
  }

  /// Whether something can be sent as soon as the socket takes it.
  var sends: Bool { !outbox.isEmpty || answers.contains { $0.isReady } }
}
