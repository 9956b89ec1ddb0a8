import FoundationEssentials

/// The errors of each kind, for patterns and comparisons.
extension LarderError {
  /// Makes `catch LarderError.timedOut` catch errors of that kind and no others.
  public static func ~= (pattern: LarderError, error: any Error) -> Bool {
    (error as? LarderError) == pattern
  }

  public static let unknown = LarderError(.unknown)
  public static let notFound = LarderError(.notFound)
  public static let illegalArgument = LarderError(.illegalArgument)
  public static let notImplemented = LarderError(.notImplemented)
  public static let notValid = LarderError(.notValid)
  public static let failed = LarderError(.failed)
  public static let queryNotSupported = LarderError(.queryNotSupported)
  public static let dataSerialization = LarderError(.dataSerialization)
  public static let malformed = LarderError(.malformed)
  public static let unknownOperation = LarderError(.unknownOperation)
  public static let frameLength = LarderError(.frameLength)
  public static let helloExpected = LarderError(.helloExpected)
  public static let versionNotSupported = LarderError(.versionNotSupported)
  public static let storeUnknown = LarderError(.storeUnknown)
  public static let storeExists = LarderError(.storeExists)
  public static let conditionFailed = LarderError(.conditionFailed)
  public static let keyInvalid = LarderError(.keyInvalid)
  public static let valueTooLarge = LarderError(.valueTooLarge)
  public static let changesLost = LarderError(.changesLost)
  public static let tooManyRequests = LarderError(.tooManyRequests)
  public static let tooManyStores = LarderError(.tooManyStores)
  public static let tooManyConnections = LarderError(.tooManyConnections)
  public static let storeFull = LarderError(.storeFull)
  public static let shuttingDown = LarderError(.shuttingDown)
  public static let serverTimedOut = LarderError(.serverTimedOut)
  public static let answerExpired = LarderError(.answerExpired)
  public static let answerCancelled = LarderError(.answerCancelled)
  public static let storeReadOnly = LarderError(.storeReadOnly)
  public static let valueDamaged = LarderError(.valueDamaged)
  public static let notPermitted = LarderError(.notPermitted)
  public static let queryStopped = LarderError(.queryStopped)
  public static let indexExists = LarderError(.indexExists)
  public static let tooManyIndexes = LarderError(.tooManyIndexes)
  public static let indexUnknown = LarderError(.indexUnknown)
  public static let uploadUnknown = LarderError(.uploadUnknown)
  public static let storeDamaged = LarderError(.storeDamaged)
  public static let notLeader = LarderError(.notLeader)
  public static let disconnected = LarderError(.disconnected)
  public static let timedOut = LarderError(.timedOut)
  public static let connectFailed = LarderError(.connectFailed)
  public static let notTrusted = LarderError(.notTrusted)
  public static let protocolViolation = LarderError(.protocolViolation)
  public static let closed = LarderError(.closed)
  public static let cancelled = LarderError(.cancelled)
}

extension LarderError: LocalizedError {
  /// The description. It isn't translated.
  public var errorDescription: String? { description }
}
