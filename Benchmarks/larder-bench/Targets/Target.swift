import Wire

/// How one kind of server is spoken to: what its requests look like, and where its replies end.
///
/// A value without state; the load loop is specialised for each of them, so nothing here costs a call.
protocol Target: Sendable {
  /// What a connection learns at its beginning and its requests need.
  associatedtype Session: Sendable, BitwiseCopyable

  init(store: String, valueSize: Int, keysInGetMany: Int)

  /// Says hello where the protocol has one, and makes sure that this kind of server answers at all.
  func greet(_ line: borrowing SetupLine) throws -> Session

  /// The request of an operation, but for its variable parts; nil when such a server has nothing like it.
  func template(for operation: Operation) -> RequestTemplate?

  /// Writes what is different in every request of a connection into the one that begins at `place`.
  func stamp(_ output: inout ByteBuffer, at place: Int, sequence: UInt32, session: Session)

  /// Looks for one reply at a place in what came from the server. Keeps nothing: what is incomplete is looked at again when
  /// there is more.
  func scan(_ bytes: RawSpan, at place: Int) -> ReplyScan

  /// The value in a whole reply to a get; nil when there was none.
  func value(in reply: RawSpan) -> [UInt8]?
}

/// What a request does, in the words of all targets.
enum Operation: Int, CaseIterable, Sendable {
  case get
  case put
  /// As many keys as the workload says.
  case getMany
  /// A page at an offset.
  case page
  /// A page that begins behind a key.
  case scan
}

/// What stands at a place in the bytes that a server sent.
enum ReplyScan: Equatable {
  case reply(Reply)
  /// The beginning of a reply that takes at least so many bytes in all.
  case incomplete(atLeast: Int)
  /// Bytes that no such server sends; nothing behind them can be understood.
  case malformed
}

/// What a server made of a request.
struct Reply: Equatable {
  /// Where the next reply begins.
  var end: Int
  /// Which request of the connection it answers; nil where replies come in the order of the requests.
  var sequence: UInt32?
  /// Whether no more parts of it follow.
  var isLast = true
  var entries: Int32 = 0
  /// Keys that were asked for and had no value.
  var misses: Int32 = 0
  var fault: Fault?

  enum Fault: Equatable {
    /// The server said that it did not do it.
    case refused
    /// It is a well-formed reply, but not to what was asked: a value of another size, say.
    case unexpected
  }
}

extension RawSpan {
  @inline(__always)
  func byte(_ place: Int) -> UInt8 { unsafe unsafeLoad(fromUncheckedByteOffset: place, as: UInt8.self) }
}
