import Larder

/// What a command says to the shell.
enum ExitStatus: Int32 {
  case done = 0
  /// No such key.
  case notFound = 1
  /// The command line or the input is not right.
  case usage = 2
  case refused = 3
  /// The server can't be reached, or did not answer in time.
  case unreachable = 4
  /// Files are not what was written.
  case damaged = 5
}

/// Why a command has not done its work, in one line: what happened and what to do next.
struct CommandFailure: Error {
  let status: ExitStatus
  let message: String

  init(_ status: ExitStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  init(_ error: LarderError) {
    status = ExitStatus(error.kind)
    let isSilent = error.message.isEmpty || error.kind == .cancelled
    message = "\(isSilent ? Self.words(error.kind) : error.message); \(Self.advice(error))"
  }

  /// What to say when the server has left it to the code.
  private static func words(_ kind: LarderError.Kind) -> String {
    switch kind {
    case .conditionFailed: "the condition does not hold"
    case .storeExists: "there is a store of that name already"
    case .storeUnknown: "there is no such store"
    case .storeFull: "the store has no room for it"
    case .cancelled: "it was stopped"
    case .shuttingDown: "the server is shutting down"
    case .tooManyConnections: "the server has as many connections as it takes"
    case .notPermitted: "the server's rules don't allow it"
    default: "it was refused (\(kind))"
    }
  }

  private static func advice(_ error: LarderError) -> String {
    switch error.kind {
    case .connectFailed:
      "is larderd running there? Its address is given with --server or LARDER_SERVER"
    case .storeUnknown: "'larder stores' lists the stores, 'larder create NAME memory' makes one"
    case .storeExists: "use it as it is, or drop it first"
    case .conditionFailed: "nothing was changed; 'larder get-many' shows the entry as it is now"
    case .changesLost: "'larder dump' shows the store as it is now"
    case .notPermitted:
      "nothing was changed; run it as a user who may, or have the administrator add a rule to larderd's setting access"
    case .answerExpired: "what came is not all of it: write the output to a file, or read it faster"
    case .protocolViolation, .versionNotSupported: "is it a larderd of this version that listens there?"
    case .cancelled where error.isSafeToRetry: "nothing was changed"
    case .timedOut where error.isSafeToRetry, .disconnected where error.isSafeToRetry:
      "try again, with a longer --timeout if the server is busy"
    default:
      switch error.outcome {
      case .notExecuted: "nothing was changed, try again"
      case .rejected: "nothing was changed"
      case .unknown: "it may have been carried out or not: look before you try again"
      }
    }
  }
}

extension ExitStatus {
  init(_ kind: LarderError.Kind) {
    self =
      switch kind {
      case .notFound: .notFound
      case .connectFailed, .timedOut, .disconnected, .closed, .cancelled, .protocolViolation, .tooManyConnections,
        .shuttingDown,
        .serverTimedOut, .answerExpired:
        .unreachable
      default: .refused
      }
  }
}
