import Platform

/// Why a connection, or an attempt to connect, is over.
enum CloseReason: Sendable {
  /// The server closed the connection, or it broke. Unanswered requests may have been executed.
  case disconnected(String)
  /// The client or the server doesn't accept the other one's certificate or protocol.
  case refused(String)
  /// The server announced the end with a notice. Unanswered requests were not executed.
  case notice(LarderError)
  case protocolViolation(String)

  init(_ error: ChannelError) {
    self = if case .refused(let reason) = error { .refused(reason) } else { .disconnected(error.description) }
  }

  /// The reply to a call that the end of the connection leaves unanswered.
  /// - Parameters:
  ///   - wasSent: Whether the server may have received the whole request.
  ///   - isPartial: Whether earlier frames of the reply have been delivered.
  func reply(from address: Address, wasSent: Bool, isPartial: Bool) -> CallResult {
    let error = error(from: address, wasSent: wasSent)
    switch self {
    case .disconnected: return .failed(error, isPartial ? .final : .connectionLost)
    case .notice:
      let isTemporary = error.outcome == .notExecuted && !isPartial
      return .failed(error, isTemporary ? .connectionLost : .final)
    case .refused, .protocolViolation: return .failed(error, .final)
    }
  }

  /// The error of a call that the end of the connection leaves unanswered.
  func error(from address: Address, wasSent: Bool) -> LarderError {
    switch self {
    case .disconnected(let reason):
      LarderError(
        .disconnected, outcome: wasSent ? .unknown : .notExecuted, "the connection to \(address) ended: \(reason)")
    case .refused(let reason): .notTrusted(reason, at: address, wasSent: wasSent)
    case .notice(let error): error
    case .protocolViolation(let reason):
      LarderError(
        .protocolViolation, outcome: wasSent ? .unknown : .notExecuted,
        "\(address) violated the protocol: \(reason)")
    }
  }

  /// The error of an attempt to connect to `address`, and whether calls fail at once instead of waiting for the next
  /// attempt.
  func connectError(to address: Address) -> (error: LarderError, isFinal: Bool) {
    switch self {
    case .disconnected(let reason):
      return (LarderError(.connectFailed, outcome: .notExecuted, "can't connect to \(address): \(reason)"), false)
    case .refused(let reason): return (.notTrusted(reason, at: address, wasSent: false), true)
    case .notice(let error): return (error, error.outcome != .notExecuted)
    case .protocolViolation(let reason):
      let error = LarderError(
        .protocolViolation, outcome: .notExecuted, "\(address) does not speak Larder's protocol: \(reason)")
      return (error, true)
    }
  }
}

/// The end of a connection, as the thread that found it reports it.
struct ConnectionFailure<Caller: Sendable>: Sendable {
  let reason: CloseReason
  /// The callers whose replies could not be decoded. They are resumed after the connection is closed, so that they
  /// don't use it again.
  var undecodable: [Caller] = []
}

/// The errors of calls that fail in the client.
extension LarderError {
  static let clientClosed = LarderError(.closed, outcome: .notExecuted, "the client was closed")

  /// The error of a call when the client or the server doesn't accept the other one.
  static func notTrusted(_ reason: String, at address: Address, wasSent: Bool) -> LarderError {
    LarderError(.notTrusted, outcome: wasSent ? .unknown : .rejected, "no secure connection to \(address): \(reason)")
  }

  static func callCancelled(_ outcome: Outcome) -> LarderError {
    LarderError(.cancelled, outcome: outcome, "the task that made the call was cancelled")
  }

  static var streamAbandoned: LarderError {
    LarderError(.cancelled, outcome: .unknown, isRead: true, "the reader of the reply was cancelled")
  }

  /// The error of a call whose deadline passed after its request was sent.
  static func noReply(from address: Address) -> LarderError {
    LarderError(.timedOut, outcome: .unknown, "no reply from \(address) within the call's timeout")
  }

  /// The error of a call whose deadline passed while it waited for requests of other calls to finish.
  static func notSent(to address: Address) -> LarderError {
    LarderError(
      .timedOut, outcome: .notExecuted,
      "the call's timeout passed while earlier requests to \(address) were unanswered")
  }

  /// The error of a call whose deadline passed while the handshake of the connection's channel was not complete.
  static func noHandshake(with address: Address) -> LarderError {
    LarderError(
      .timedOut, outcome: .notExecuted,
      "\(address) accepted the connection, but did not complete the handshake within the call's timeout: it is busy, or "
        + "it expects clients to connect in another way")
  }

  /// The error of a call whose deadline passed while the server had not replied to the hello.
  static func noHello(from address: Address) -> LarderError {
    LarderError(
      .timedOut, outcome: .notExecuted,
      "\(address) accepted the connection, but did not reply to the hello within the call's timeout: it is busy, or it "
        + "is not larderd")
  }

  /// The error of a call whose deadline passed while there was no connection.
  static func noConnection(to address: Address) -> LarderError {
    LarderError(.timedOut, outcome: .notExecuted, "no connection to \(address) within the call's timeout")
  }

  /// The error of a call whose deadline passed while all store handles were in use.
  static func noStoreHandle(at address: Address, limit: Int) -> LarderError {
    LarderError(
      .tooManyStores, outcome: .notExecuted,
      """
      \(address) lets a connection open \(limit) stores, and calls on as many others were unfinished for all of the \
      call's timeout: use fewer stores at the same time, or more connections
      """)
  }

  /// The error of a call whose operation the server doesn't have, according to its hello.
  static func noSuchOperation(at address: Address) -> LarderError {
    LarderError(.unknownOperation, outcome: .rejected, "\(address) doesn't support this operation: update that server")
  }

  static var malformedReply: LarderError {
    LarderError(.protocolViolation, outcome: .unknown, "the body of a reply is malformed")
  }
}
