import Documents
import Storage
import Wire

/// A protocol of requests and replies: how requests are found in the input and become commands, and how outcomes become
/// replies. A `Session` does everything else.
///
/// Requests that concern only the protocol itself, such as a hello, are the codec's alone, and so are the requests to the
/// server, whose replies have a form in each protocol. A codec has no state: what belongs to a connection is in the
/// `Connection`.
protocol Codec {
  associatedtype Request: EncodedRequest

  /// Whether a client must introduce itself first. Otherwise it gets its rights when it connects.
  static var hasGreeting: Bool { get }

  /// Whether replies come in the order of their requests, so that a request waits until the streams of those before it
  /// have ended.
  static var isOrdered: Bool { get }

  /// Whether clients may send any number of requests before they read a reply, so that replies are kept while requests
  /// are read.
  static var keepsReplies: Bool { get }

  // MARK: Requests

  /// Looks for a request.
  /// - Parameters:
  ///   - offset: Where the request begins.
  ///   - maxSize: The size in bytes, as the codec counts it, from which on a request is invalid.
  static func scan(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<Request>

  /// The maximum size of a request, as the codec counts it.
  /// - Parameter isStranger: Whether the client has yet to prove who it is.
  static func maxRequestSize(_ limits: borrowing ServerLimits, isStranger: Bool) -> Int

  /// Decodes a request on entries.
  /// - Parameter bytes: Those of `Request.body(at:)`.
  static func command(of request: Request, _ bytes: RawSpan) throws(CommandFailure) -> Command

  /// Whether commands are decoded from other bytes than those of their requests.
  static var translatesCommands: Bool { get }

  /// Returns the command of a request on entries, and the bytes that it is decoded from, if these are not the request's.
  static func translatedCommand(
    of request: Request, _ bytes: RawSpan, of connection: inout Connection
  ) throws(CommandFailure) -> (Command, [UInt8])

  /// Whether rights that depend on keys permit a request on entries, whose form may be wrong.
  static func isPermitted(_ request: Request, _ bytes: RawSpan, by rights: StoreRights) -> Bool

  /// The range of the key of a request on one key in its bytes, to prefetch it; nil for any other request.
  static func key(of request: Request, _ bytes: RawSpan) -> Range<Int>?

  /// The range of the only key of a request that is on nothing else, in its bytes; nil for any other request, or if that
  /// takes long to find out.
  static func soleKey(of request: Request, _ bytes: RawSpan) -> Range<Int>?

  /// Executes a request on entries for which there is no `Command`, under the lock of their store, and appends its reply.
  /// Appends nothing if it throws.
  /// - Returns: Nil if the request is to be executed as a `Command`.
  static func executeOnEntries(
    _ request: Request, _ bytes: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(Detour) -> CodecExecution?

  /// Executes any request that isn't on the entries of an open store, and rejects requests that can't be executed. No store
  /// is locked.
  static func execute(
    _ request: Request, _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd

  /// Makes what is kept for a client that has connected; nil for nothing.
  static func makeClientState(_ server: ServerState, _ mailbox: Mailbox, _ sharer: ConnectionSharer) -> AnyObject?

  /// Whether other clients need the memory of what is kept for a client, which must be disconnected.
  static func hasLostMemory(_ connection: inout Connection) -> Bool

  /// Gives up what a client has begun with rights that it may no longer have.
  static func didChangeRights(of connection: inout Connection)

  /// Appends what a client is told without having asked, as long as it has read what was sent before.
  static func appendPushes(of connection: inout Connection, into replies: inout ReplyBuffer)

  /// Executes those requests among the input of a connection that need not wait for the stream that the others wait for.
  static func executeAhead(
    of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer)

  // MARK: Replies

  /// Appends the reply with the outcome of a command on entries.
  /// - Parameter now: The time, in milliseconds of the clock that expiries are measured with.
  static func append(_ outcome: CommandOutcome, to request: UInt32, now: UInt64, into replies: inout ReplyBuffer)

  /// Appends the reply to a request that took longer than its wakeup and has not failed.
  static func append(_ outcome: LateOutcome, to request: UInt32, into replies: inout ReplyBuffer)

  /// Appends a failure.
  /// - Parameter request: The request's tag; nil for a notice, the connection's last reply.
  static func append(_ failure: CommandFailure, to request: UInt32?, into bytes: inout ByteBuffer)

  /// Appends the failure of a request that was refused before it was executed.
  static func refuse(
    _ request: Request, _ failure: CommandFailure, of connection: inout Connection, into replies: inout ReplyBuffer)

  /// Replies to the beginning of a request, whose rest the client may hold back until then, or refuses the rest.
  static func replyToBeginning(
    _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer)

  /// Whether the connection ends after the reply to a request.
  static func isLast(_ request: Request) -> Bool

  /// Appends a failure in place of the rest of a stream.
  static func append(_ failure: CommandFailure, toBegunStream request: UInt32, into bytes: inout ByteBuffer)

  /// Begins a part of a stream.
  /// - Parameters:
  ///   - isFirst: Whether the stream begins with it.
  ///   - throughRevision: That of a part with changes; nil for any other part.
  static func beginPart(
    of request: UInt32, isFirst: Bool, through throughRevision: UInt64?, _ limits: borrowing ServerLimits,
    into replies: inout ReplyBuffer
  ) -> StreamPart

  /// Appends an entry to a part.
  /// - Parameters:
  ///   - entry: Nil for a key without an entry.
  ///   - now: The time, in milliseconds of the clock that expiries are measured with.
  /// - Returns: False, with nothing appended, if the part is full. One without a record is never full.
  static func append(
    _ entry: EntryView?, hasKey: Bool, hasValue: Bool, to part: StreamPart, now: UInt64, into replies: inout ReplyBuffer
  ) -> Bool

  /// Appends another record to a part.
  /// - Returns: False, with nothing appended, if the part is full. One without a record is never full.
  static func append(_ record: StreamRecord, to part: StreamPart, into replies: inout ReplyBuffer) -> Bool

  /// Ends a part.
  /// - Parameters:
  ///   - throughRevision: As for `beginPart`.
  ///   - isLast: Whether the stream ends with it.
  static func end(
    _ part: StreamPart, through throughRevision: UInt64?, isLast: Bool, into replies: inout ReplyBuffer)
}

extension Codec {
  static var keepsReplies: Bool { false }
  static var translatesCommands: Bool { false }

  static func translatedCommand(
    of request: Request, _ bytes: RawSpan, of connection: inout Connection
  ) throws(CommandFailure) -> (Command, [UInt8]) {
    preconditionFailure("commands are decoded from their requests")
  }

  static func refuse(
    _ request: Request, _ failure: CommandFailure, of connection: inout Connection, into replies: inout ReplyBuffer
  ) {
    append(failure, to: request.tag, into: &replies.bytes)
  }

  static func replyToBeginning(
    _ bytes: RawSpan, of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer
  ) {}

  @inline(__always)
  static func isLast(_ request: Request) -> Bool { false }

  static func append(_ failure: CommandFailure, toBegunStream request: UInt32, into bytes: inout ByteBuffer) {
    append(failure, to: request, into: &bytes)
  }

  @inline(__always)
  static func soleKey(of request: Request, _ bytes: RawSpan) -> Range<Int>? { nil }

  static func isPermitted(_ request: Request, _ bytes: RawSpan, by rights: StoreRights) -> Bool {
    // The executor says what is wrong with a malformed one, which doesn't depend on entries.
    guard let command = try? command(of: request, bytes) else { return true }
    return command.isPermitted(in: bytes, by: rights)
  }

  @inline(__always)
  static func executeOnEntries(
    _ request: Request, _ bytes: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(Detour) -> CodecExecution? { nil }

  static func executeAhead(
    of connection: inout Connection, on executor: inout Executor, into replies: inout ReplyBuffer
  ) {}

  static func makeClientState(_ server: ServerState, _ mailbox: Mailbox, _ sharer: ConnectionSharer) -> AnyObject? {
    nil
  }

  static func hasLostMemory(_ connection: inout Connection) -> Bool { false }

  static func didChangeRights(of connection: inout Connection) {}

  static func appendPushes(of connection: inout Connection, into replies: inout ReplyBuffer) {}
}

/// A request in the input of a connection.
protocol EncodedRequest {
  /// The size of the whole request, in bytes.
  var size: Int { get }
  /// What tells the client which reply belongs to it.
  var tag: UInt32 { get }
  /// The number of its operation, which may be unknown.
  var operation: UInt8 { get }
  /// The handle of the open store that it is about; 0 for none.
  var store: UInt16 { get }
  /// Whether it is well-formed as far as every request is, so that it may be on entries.
  var isRegular: Bool { get }

  /// Returns the range of the bytes that a command is decoded from if the request begins at an offset.
  func body(at offset: Int) -> Range<Int>
}

/// What is at an offset in the input of a connection.
enum RequestScan<Request> {
  /// A whole request.
  case request(Request)
  /// The beginning of a request, with the minimum size of all of it in bytes; 0 if nothing is known of it.
  case partial(size: Int)
  /// What can't begin a request. Nothing after it can be decoded.
  case invalid(CommandFailure)
}

/// What has become of a request.
enum RequestEnd {
  /// Its reply has been appended, or it has none.
  /// - Parameter failure: That of the reply; nil if there is none.
  case replied(failure: ErrorCode?)
  /// Its reply follows, when a job or a pause has ended.
  case pending
  /// Nothing was done, and it must be executed again soon.
  case deferred
  /// Nothing was done, because the connection pauses. It is executed again afterward.
  case paused

  static let done = RequestEnd.replied(failure: nil)
}

/// What has become of a request that a codec has executed itself.
struct CodecExecution {
  /// The error of the reply; nil if it has none.
  let failure: ErrorCode?
  /// The newest commit that the reply reveals or acknowledges; 0 for none.
  let shownRevision: UInt64
}

/// A part of a stream that is being appended to a reply buffer.
struct StreamPart {
  /// The tag of the stream's request.
  let tag: UInt32
  /// Whether the stream begins with it.
  let isFirst: Bool
  /// Where it begins, in bytes.
  let start: Int
  /// Where its contents begin, after what a protocol puts before them.
  let payloadStart: Int
  /// Where its first record begins.
  let recordsStart: Int
  /// Where its last record ends at most, unless it is the only one.
  let maxEnd: Int

  /// Whether it has no record.
  func isEmpty(in replies: borrowing ReplyBuffer) -> Bool { replies.bytes.count == recordsStart }

  /// Whether a record fits.
  @inline(__always)
  func fits(_ byteCount: Int, in replies: borrowing ReplyBuffer) -> Bool {
    replies.bytes.count + byteCount <= maxEnd || isEmpty(in: replies)
  }
}

/// What a stream consists of besides entries.
enum StreamRecord {
  /// Fields of a document.
  /// - Parameter lifetime: The milliseconds until it expires; 0 for never.
  case object(key: ArraySlice<UInt8>, [UInt8], revision: UInt64, lifetime: UInt64)
  /// A row of an aggregation.
  case row(ArraySlice<UInt8>)
  /// What follows documents and rows.
  case result(FindResult)
  /// - Parameter lifetime: The milliseconds until the entry expires; 0 for never.
  case change(ChangeView, hasValue: Bool, lifetime: UInt64)
  case incarnation(UInt64)
  /// Changes up to a revision are lost.
  case lost(through: UInt64)

  /// Fields of an entry that is a document.
  static func fields(of entry: StoredEntry, _ projection: EntryProjection, now: UInt64) -> StreamRecord {
    .object(
      key: entry.withKey { key in unsafe key.withUnsafeBufferPointer { unsafe ArraySlice($0) } },
      projection.object(of: entry), revision: entry.revision, lifetime: entry.expiry == 0 ? 0 : entry.expiry - now)
  }
}
