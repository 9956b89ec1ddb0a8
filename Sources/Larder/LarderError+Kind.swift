import Wire

extension LarderError {
  /// The sorts of failure. The first three groups are the server's answers, the last is this library's own.
  public enum Kind: Hashable, Sendable, CaseIterable {
    // The codes of all data sources.
    case unknown, notFound, illegalArgument, notImplemented, notValid, failed, queryNotSupported, dataSerialization
    // A request that the server did not take.
    case malformed, unknownOperation, frameLength, helloExpected, versionNotSupported, storeUnknown, storeExists,
      conditionFailed
    case keyInvalid, valueTooLarge
    /// A watch has missed changes that the server does not keep any more.
    case changesLost
    // A server that can't, for now.
    case tooManyRequests, tooManyStores, tooManyConnections, storeFull, shuttingDown, serverTimedOut, answerExpired,
      answerCancelled, storeReadOnly
    /// The server can't read a value of the answer from its disk, or what it read is not what was written.
    case valueDamaged
    /// The server's rules don't let this user do that.
    case notPermitted
    /// The connection ended before the reply came.
    case disconnected
    /// The call's time was up.
    case timedOut
    /// No connection to the server came about within the call's time.
    case connectFailed
    /// The server sent what the protocol does not allow. The connection was closed.
    case protocolViolation
    /// The client was closed.
    case closed
    /// The task that made the call was cancelled.
    case cancelled

    /// The number that goes with the kind.
    public var code: UInt16 { serverCode?.rawValue ?? localCode }

    private var localCode: UInt16 {
      switch self {
      case .disconnected: 256
      case .timedOut: 257
      case .connectFailed: 258
      case .protocolViolation: 259
      case .closed: 260
      case .cancelled: 261
      default: 0
      }
    }

    private var serverCode: ErrorCode? {
      ErrorCode.allCases.first { Kind($0) == self }
    }

    init(_ code: ErrorCode) {
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
        }
    }
  }

  /// What an error frame says. Codes this library does not know go by their outcome, and outcomes it does not know are unknown ones.
  init(frame header: FrameHeader, body: RawSpan) {
    let code = ErrorCode(rawValue: header.detail)
    let outcome: Outcome =
      switch Wire.Outcome(rawValue: header.kind) {
      case .notExecuted: .notExecuted
      case .rejected: .rejected
      default: .unknown
      }
    // A message is for people, who don't read more than this.
    let text = body.extracting(0..<min(body.byteCount, 4_096)).toString()
    self.init(code.map { Kind($0) } ?? .unknown, code: header.detail, outcome: outcome, text)
  }
}
