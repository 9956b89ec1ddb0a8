import Storage
import Wire

/// Serves the requests of connections in one protocol: finds them in the input, executes them, and encodes what has
/// happened.
///
/// A session is a type without state that names its codec; everything is implemented in extensions, which the compiler
/// specializes for each of these types. What belongs to a connection is in the `Connection`, and what belongs to a worker
/// in its `Executor`.
protocol Session: Sendable {
  /// The protocol that the clients speak.
  associatedtype C: Codec

  /// Whether a client must introduce itself first.
  var hasGreeting: Bool { get }

  /// Whether replies come in the order of their requests, so that a client takes any for that to its next request.
  var isOrdered: Bool { get }

  /// Whether replies are kept while requests are read; see `Codec.keepsReplies`.
  var keepsReplies: Bool { get }

  /// Returns what is at the beginning of input.
  /// - Parameter maxSize: As for `Codec.scan`.
  func scan(_ bytes: RawSpan, maxSize: Int) -> InputScan

  /// The maximum size of a request, as its codec counts it.
  func maxRequestSize(_ limits: borrowing ServerLimits, isStranger: Bool) -> Int

  /// Prefetches the index for the requests that a connection sent, if the first one is on entries, and locks their store.
  /// - Parameter connection: It isn't changed, but a call that only borrows it copies it.
  /// - Returns: The end of the requests that were looked at.
  func prefetch(_ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor) -> Int

  /// Executes the requests in `bytes` until the bytes or the room for replies run out, or the connection must wait or
  /// ends.
  /// - Parameter prefetchEnd: The end of the requests whose memory `prefetch` has requested.
  /// - Returns: The number of bytes consumed. What follows is the beginning of a request, or has to wait: until the client
  ///   reads its replies, or for the end of a pause or a change.
  func process(
    _ bytes: RawSpan, of connection: inout Connection, prefetchEnd: Int, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Int

  /// Executes those requests among the input of a connection that need not wait for the stream that the others wait for.
  func executeAhead(of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer)

  /// Makes what is kept for a client that has connected; nil for nothing.
  func makeClientState(_ server: ServerState, _ mailbox: Mailbox, _ sharer: ConnectionSharer) -> AnyObject?

  /// Whether other clients need the memory of what is kept for a client, which must be disconnected.
  func hasLostMemory(_ connection: inout Connection) -> Bool

  /// Appends what a client is told without having asked, as long as it has read what was sent before.
  func appendPushes(of connection: inout Connection, into replies: inout ReplyBuffer)

  /// Appends parts of a connection's open streams, one of each in rotation, as far as their credit and the room for
  /// replies go.
  func continueStreams(
    of connection: inout Connection, notifying watchers: inout WatcherTable, on executor: inout Executor,
    into replies: inout ReplyBuffer)

  /// Gives up what a client has begun with rights that it may no longer have.
  func didChangeRights(of connection: inout Connection)

  /// Ends the streams of a connection to which a cause applies.
  /// - Returns: Whether there were any.
  func endStreams(
    of connection: inout Connection, _ cause: StreamEndCause, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> Bool

  /// Ends a pause: appends the reply that has waited, or lets the next request be executed again.
  /// - Parameter isOverdue: Whether the wait takes too long.
  func endPause(
    of connection: inout Connection, isOverdue: Bool, on executor: inout Executor, into replies: inout ReplyBuffer)

  /// Begins the reply to a job that has ended, if the connection still waits for it.
  func beginReply(
    to job: DocumentJob, of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer)

  /// Appends a notice, the connection's last reply. Nothing is executed after it. Just closes the connection while it
  /// waits for a change of the stores, or has yet to report a change by a job: a notice would say that the change is not
  /// made.
  func end(
    _ connection: inout Connection, _ code: ErrorCode, _ message: String, on executor: inout Executor,
    into replies: inout ReplyBuffer)

  /// Appends a failure in place of a reply.
  /// - Parameter request: The tag of the request; nil for a notice, the connection's last reply.
  func append(_ failure: CommandFailure, to request: UInt32?, into bytes: inout ByteBuffer)

  /// Appends a failure in place of the rest of a stream.
  func append(_ failure: CommandFailure, toBegunStream request: UInt32, into bytes: inout ByteBuffer)
}

/// What is at the beginning of the input of a connection.
enum InputScan {
  /// A whole request of that size, in bytes.
  case whole(size: Int)
  /// The beginning of a request, with the minimum size of all of it in bytes; 0 if nothing is known of it.
  case partial(size: Int)
  case invalid
}

/// Why streams of a connection end although their client doesn't want them to.
enum StreamEndCause {
  /// Their client has sent no credit for too long, or will not send any more.
  case lackOfCredit
  /// Their stores were dropped.
  case droppedStore
  /// Their connection may not use their stores any more as their requests did.
  /// - Parameter former: What the client might do before.
  case lostRight(former: Grants)
  /// Other clients need their memory.
  case lostMemory
}
