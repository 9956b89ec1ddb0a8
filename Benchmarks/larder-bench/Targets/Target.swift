import Wire

/// A kind of server: the format of its requests, and how to find the ends of its replies.
///
/// A value without mutable state. The load loop is specialized for each conforming type, so that nothing here costs a
/// call.
protocol Target: Sendable {
  /// State that a connection's handshake yields and its requests need.
  associatedtype Session: Sendable, BitwiseCopyable

  init(store: String, valueSize: Int, keysPerRequest: Int)

  /// Performs the protocol's handshake, if any, and checks that this kind of server replies.
  func handshake(_ connection: borrowing SetupConnection) throws -> Session

  /// Returns the request of an operation without its variable parts, or nil if this kind of server lacks the operation.
  func template(for operation: LoadOperation) -> RequestTemplate?

  /// Patches the fields that differ in every request of a connection, in the request that starts at `offset`.
  func stamp(_ output: inout ByteBuffer, at offset: Int, sequence: UInt32, session: Session)

  /// Scans received bytes for a reply that starts at `offset`. Keeps no state: an incomplete reply is scanned again
  /// once there are more bytes.
  func scan(_ bytes: RawSpan, at offset: Int) -> TargetReplyScan

  /// Returns the value in a whole reply to a get, or nil if it contains none.
  func value(in reply: RawSpan) -> [UInt8]?
}

/// An operation of any target.
enum LoadOperation: Int, CaseIterable, Sendable {
  case get
  case put
  /// A get of as many keys as the workload specifies.
  case getMany
  /// A put of as many existing keys, in one step.
  case putMany
  /// The same puts, and checks that as many other keys are absent, in one step.
  case apply
  /// A page at an offset.
  case page
  /// A page that starts after a key.
  case scan
}

/// The result of scanning for a reply.
enum TargetReplyScan: Equatable {
  case reply(TargetReply)
  /// The start of a reply of at least this many bytes.
  case incomplete(atLeast: Int)
  /// Invalid bytes, after which no reply can be found.
  case malformed
}

/// A server's reply to a request.
struct TargetReply: Equatable {
  /// The offset of the next reply.
  var end: Int
  /// The sequence number of the request; nil if replies arrive in the order of requests.
  var sequence: UInt32?
  /// Whether this is the last frame of the reply.
  var isLast = true
  var entries: Int32 = 0
  /// The number of requested keys without a value.
  var misses: Int32 = 0
  var failure: Failure?

  enum Failure: Equatable {
    /// The server returned an error.
    case refused
    /// The reply is well formed but does not match the request, for example because the value has another size.
    case unexpected
  }
}

extension RawSpan {
  @inline(__always)
  func byte(_ offset: Int) -> UInt8 { unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self) }
}
