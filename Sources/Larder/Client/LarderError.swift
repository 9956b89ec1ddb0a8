import Wire

/// The reason why a call did not succeed, and what is known about its request.
///
/// Errors of the same kind are equal, so that a kind can be caught:
///
///     do { try await items.put("a", bytes) } catch LarderError.timedOut { … } catch LarderError.storeFull { … }
///
/// Log `code`, or compare it across languages. `outcome` says whether the request may have been executed, and
/// `isSafeToRetry` whether the same call can be repeated without the risk of executing it twice. These two and the
/// message take no part in comparisons.
public struct LarderError: Error, Hashable, Sendable {
  public let kind: Kind
  /// A stable number: the server's code (below 256, `Protocol/wire.md` §7), or one of this library (256 and up,
  /// `Kind.code`).
  public let code: UInt16
  public let outcome: Outcome
  /// What happened, for people. The text is not stable.
  public let message: String
  /// Whether the call only reads, so that repeating it does no harm.
  private let isRead: Bool

  /// What is known about the request.
  public enum Outcome: Hashable, Sendable {
    /// Nothing was changed, and the same call may succeed later.
    case notExecuted
    /// Nothing was changed, and the same call would be refused again as long as the store does not change.
    case rejected
    /// The request may have been executed, completely or not at all.
    case unknown
  }

  /// Creates an error, for example for a fake in a test.
  /// - Parameters:
  ///   - outcome: What is known about the request; nil for what is known after most errors of the kind.
  ///   - isRead: Whether the call only reads, so that it is safe to repeat whatever its outcome.
  ///   - message: What happened, for people.
  public init(_ kind: Kind, outcome: Outcome? = nil, isRead: Bool = false, _ message: String = "") {
    self.init(kind, code: kind.code, outcome: outcome ?? kind.usualOutcome, isRead: isRead, message)
  }

  private init(_ kind: Kind, code: UInt16, outcome: Outcome, isRead: Bool, _ message: String) {
    self.kind = kind
    self.code = code
    self.outcome = outcome
    self.isRead = isRead
    self.message = message
  }

  public static func == (a: LarderError, b: LarderError) -> Bool { a.kind == b.kind }
  public func hash(into hasher: inout Hasher) { hasher.combine(kind) }

  /// A Boolean value that indicates whether the same call can be repeated without the risk of executing it twice: it
  /// was not executed, or it only reads.
  public var isSafeToRetry: Bool {
    switch outcome {
    case .notExecuted: true
    case .rejected: false
    case .unknown: isRead
    }
  }

  /// Returns the same error of a call that only reads.
  func ofRead(_ isRead: Bool) -> LarderError {
    isRead ? LarderError(kind, code: code, outcome: outcome, isRead: true, message) : self
  }
}

extension LarderError: CustomStringConvertible {
  /// What happened and what to do.
  public var description: String {
    let text = message.isEmpty ? "the call failed without a message" : message
    return "\(text) (\(kind), code \(code)); \(advice)"
  }

  private var advice: String {
    switch outcome {
    case .notExecuted: "nothing was changed; you can repeat the call"
    case .rejected: rejectedAdvice
    case .unknown where isRead: "the call only reads; you can repeat it"
    case .unknown:
      "the call may have been executed: read the entry, or make the write conditional, before you write again"
    }
  }

  private var rejectedAdvice: String {
    switch kind {
    case .conditionFailed: "nothing was changed: read the entry and decide again"
    case .storeUnknown:
      "nothing was changed: check the store's name, or create the store, with createStore or a data source's creating:"
    case .changesLost: "read the store, and watch it again from the revision that you read"
    case .notPermitted:
      """
      nothing was changed: call as a user with that right, or ask the server's administrator to add a rule to \
      larderd's setting access
      """
    case .queryStopped: "make the selector narrower or the batch smaller, or raise the limit in larderd's settings"
    case .indexExists: "nothing was changed: give the index another name, or delete the one that exists"
    case .tooManyIndexes: "nothing was changed: delete an index that is not used"
    case .indexUnknown: "check the index's name"
    case .uploadUnknown: "nothing was changed: put the value again, from its beginning"
    case .storeDamaged: "nothing was changed: repair the store's files or restore a backup, and restart the server"
    case .notTrusted: "correct the certificates, the names or the address"
    case .versionNotSupported: "use a client and a server with a common protocol version"
    default: "nothing was changed; the same call would be refused again"
    }
  }
}

extension LarderError {
  /// The kinds of failure. The first three groups come from the server, the last one from this library.
  public enum Kind: Hashable, Sendable, CaseIterable {
    // The codes of all data sources.
    case unknown, notFound, illegalArgument, notImplemented, notValid, failed, queryNotSupported, dataSerialization
    // A request that the server refused.
    case malformed, unknownOperation, frameLength, helloExpected, versionNotSupported, storeUnknown, storeExists,
      conditionFailed
    case keyInvalid, valueTooLarge
    /// A watch has missed changes that the server no longer keeps.
    case changesLost
    // A server that can't execute the request for now.
    case tooManyRequests, tooManyStores, tooManyConnections, storeFull, shuttingDown, serverTimedOut, answerExpired,
      answerCancelled, storeReadOnly
    /// The server can't read a requested value from its disk, or what it read is not what was written.
    case valueDamaged
    /// The server's rules don't permit this user to do that.
    case notPermitted
    /// Finding or changing documents exceeded a limit of the server.
    case queryStopped
    /// The store has an index of that name with another definition.
    case indexExists
    /// The store has as many indexes as a store can have.
    case tooManyIndexes
    /// The store has no index of that name.
    case indexUnknown
    /// The server has discarded an upload, or the connection on which it began was lost.
    case uploadUnknown
    /// The store's files are damaged or could not be read, so the server does not serve the store.
    case storeDamaged
    /// The server does not serve the store, because another one does, or none for now. A client that knows several
    /// addresses tries the others.
    case notLeader
    /// The connection ended before the reply arrived.
    case disconnected
    /// The call's timeout passed.
    case timedOut
    /// The client could not connect to the server within the call's timeout.
    case connectFailed
    /// The client doesn't accept the server's certificate, or the server doesn't accept the client's.
    case notTrusted
    /// The server violated the protocol. The connection was closed.
    case protocolViolation
    /// The client was closed.
    case closed
    /// The task that made the call was cancelled.
    case cancelled

    /// The number of the kind.
    public var code: UInt16 { serverCode?.rawValue ?? localCode }

    private var localCode: UInt16 {
      switch self {
      case .disconnected: 256
      case .timedOut: 257
      case .connectFailed: 258
      case .protocolViolation: 259
      case .closed: 260
      case .cancelled: 261
      case .notTrusted: 262
      default: preconditionFailure("\(self) is a code of the server.")
      }
    }

    /// The outcome of most errors of the kind; that of the server's errors as in `Protocol/wire.md` §7.
    fileprivate var usualOutcome: Outcome {
      switch self {
      case .unknown, .failed, .disconnected, .timedOut, .protocolViolation, .cancelled: .unknown
      case .tooManyRequests, .tooManyConnections, .storeFull, .shuttingDown, .serverTimedOut, .answerExpired,
        .notLeader, .connectFailed, .closed:
        .notExecuted
      default: .rejected
      }
    }

    private var serverCode: ErrorCode? {
      ErrorCode.allCases.first { Kind($0) == self }
    }

    fileprivate init(_ code: ErrorCode) {
      self =
        switch code {
        case .unknown: .unknown
        case .notFound: .notFound
        case .illegalArgument: .illegalArgument
        case .notImplemented: .notImplemented
        case .notValid: .notValid
        case .failed: .failed
        case .queryNotSupported: .queryNotSupported
        case .dataSerialization: .dataSerialization
        case .malformed: .malformed
        case .unknownOperation: .unknownOperation
        case .frameLength: .frameLength
        case .helloExpected: .helloExpected
        case .versionNotSupported: .versionNotSupported
        case .storeUnknown: .storeUnknown
        case .storeExists: .storeExists
        case .conditionFailed: .conditionFailed
        case .keyInvalid: .keyInvalid
        case .valueTooLarge: .valueTooLarge
        case .tooManyRequests: .tooManyRequests
        case .tooManyStores: .tooManyStores
        case .tooManyConnections: .tooManyConnections
        case .storeFull: .storeFull
        case .shuttingDown: .shuttingDown
        case .timedOut: .serverTimedOut
        case .answerExpired: .answerExpired
        case .cancelled: .answerCancelled
        case .storeReadOnly: .storeReadOnly
        case .valueDamaged: .valueDamaged
        case .changesLost: .changesLost
        case .notPermitted: .notPermitted
        case .queryStopped: .queryStopped
        case .indexExists: .indexExists
        case .tooManyIndexes: .tooManyIndexes
        case .indexUnknown: .indexUnknown
        case .uploadUnknown: .uploadUnknown
        case .storeDamaged: .storeDamaged
        case .notLeader: .notLeader
        }
    }
  }

  /// Decodes an error frame. An unknown code has the kind `unknown`, and so does an outcome.
  init(frame header: FrameHeader, body: RawSpan) {
    let code = ErrorCode(rawValue: header.detail)
    let outcome: Outcome =
      switch Wire.Outcome(rawValue: header.kind) {
      case .notExecuted: .notExecuted
      case .rejected: .rejected
      default: .unknown
      }
    // Bounded, because a message is for people.
    let text = body.extracting(0..<min(body.byteCount, 4_096)).toString()
    self.init(code.map { Kind($0) } ?? .unknown, code: header.detail, outcome: outcome, isRead: false, text)
  }
}
