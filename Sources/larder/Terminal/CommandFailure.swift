import Larder

/// The exit status of `larder`. A contract with scripts.
enum ExitStatus: Int32 {
  case success = 0
  /// The key has no entry.
  case notFound = 1
  /// The command line or the input is invalid.
  case usage = 2
  /// The server refused the request.
  case refused = 3
  /// The server can't be reached, or did not reply in time.
  case unreachable = 4
  /// Files are damaged.
  case damaged = 5
}

/// Why a command failed, in one line: what happened, and what to do next.
struct CommandFailure: Error {
  let status: ExitStatus
  let message: String

  init(_ status: ExitStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  /// - Parameter suggestion: What the person may have meant.
  init(_ error: LarderError, suggestion: String? = nil) {
    status = ExitStatus(error.kind)
    let needsText = error.message.isEmpty || error.kind == .cancelled
    let reason = needsText ? Self.text(error.kind) : error.message
    message = "\(reason); \(Self.question(suggestion))\(Self.advice(error))"
  }

  /// Returns a question, with a space after it, if there is a suggestion.
  static func question(_ suggestion: String?) -> String { suggestion.map { "did you mean '\($0)'? " } ?? "" }

  /// Returns the text for an error that has no message of its own.
  private static func text(_ kind: LarderError.Kind) -> String {
    switch kind {
    case .conditionFailed: "the condition does not hold"
    case .storeExists: "the store already exists"
    case .storeUnknown: "there is no such store"
    case .storeFull: "the store is full"
    case .cancelled: "interrupted"
    case .shuttingDown: "the server is shutting down"
    case .tooManyConnections: "the server has reached its connection limit"
    case .notPermitted: "the server's access rules don't permit this"
    case .indexExists: "the store has an index of that name with another definition"
    case .tooManyIndexes: "the store can't have more indexes"
    case .indexUnknown: "there is no such index"
    case .storeDamaged: "the store is damaged and not served"
    case .notLeader: "another server serves the store"
    default: "the server refused the request (\(kind))"
    }
  }

  private static func advice(_ error: LarderError) -> String {
    switch error.kind {
    case .connectFailed:
      "is larderd running there? Set its address with --server or LARDER_SERVER"
    case .storeUnknown: "'larder stores' lists the stores, 'larder create NAME memory' creates one"
    case .storeExists: "use it as it is, or drop it first"
    case .conditionFailed: "nothing was changed; 'larder get-many' shows the current entry"
    case .changesLost: "'larder dump' prints the store's current entries"
    case .notPermitted:
      "nothing was changed; run it as a user with that right, or ask for a rule in larderd's setting access"
    case .queryStopped:
      "make the selector narrower or the batch smaller, give it more --time, or raise the limit that the message names"
    case .indexExists: "nothing was changed; use another name, or delete the index with 'larder index delete'"
    case .tooManyIndexes: "nothing was changed; delete an index that isn't used with 'larder index delete'"
    case .indexUnknown: "'larder index list' lists the indexes"
    case .storeDamaged:
      "nothing was changed; 'larder check' shows what is intact, and 'larder drop' removes the store for a backup"
    case .answerExpired: "the output is incomplete; write it to a file, or read it faster"
    case .protocolViolation, .versionNotSupported: "check that a larderd of this version is listening there"
    case .cancelled where error.isSafeToRetry: "nothing was changed"
    case .timedOut where error.isSafeToRetry, .disconnected where error.isSafeToRetry:
      "try again, with a longer --timeout if the server is busy"
    default:
      switch error.outcome {
      case .notExecuted: "nothing was changed; try again"
      case .rejected: "nothing was changed"
      case .unknown: "the request may or may not have been executed; check before you try again"
      }
    }
  }
}

extension LarderError {
  /// Whether the server, or another one, may do better later.
  var isAboutServer: Bool { kind == .notLeader || ExitStatus(kind) == .unreachable }
}

extension ExitStatus {
  init(_ kind: LarderError.Kind) {
    self =
      switch kind {
      case .notFound: .notFound
      case .connectFailed, .timedOut, .disconnected, .closed, .cancelled, .protocolViolation, .tooManyConnections,
        .shuttingDown, .serverTimedOut, .answerExpired, .notTrusted:
        .unreachable
      default: .refused
      }
  }
}
