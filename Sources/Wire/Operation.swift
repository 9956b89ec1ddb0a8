/// The operations of requests: `Protocol/wire.md` §6.
public enum Operation: UInt8, CaseIterable, Sendable {
  case hello = 1
  case credit = 2
  case cancel = 3
  case ping = 4
  case stats = 5
  case slowLog = 6
  case connections = 7
  case storeOpen = 8
  case storeClose = 9
  case storeCreate = 10
  case storeList = 11
  case storeDrop = 12
  case indexEnsure = 13
  case indexDelete = 14
  case getRange = 15
  case get = 16
  case getMany = 17
  case put = 18
  case putMany = 19
  case delete = 20
  case deleteMany = 21
  case deleteAll = 22
  case count = 23
  case page = 24
  case all = 25
  case watch = 26
  case find = 27
  case aggregate = 28
  case changeMatching = 29
  case indexList = 30
  case apply = 31
  case uploadBegin = 32
  case uploadPart = 33
  case uploadPut = 34
  case uploadDiscard = 35
  case whoami = 36
  case rulesCheck = 37
  case tokenList = 38
  case cluster = 39
  case storeMove = 40
  case storeOpenStale = 41
  case consoleLink = 42

  /// The operation's name in the protocol: `store-open` for `storeOpen`.
  public var name: String { "\(self)".map { $0.isUppercase ? "-\($0.lowercased())" : String($0) }.joined() }
}

/// What a client knows about a request after its reply: `Protocol/wire.md` §7.
public enum Outcome: UInt8, Sendable {
  case done = 0
  case notExecuted = 1
  case rejected = 2
  case unknown = 3
}

/// The reasons why a request was not executed: `Protocol/wire.md` §7. Codes 0 to 7 are those of the data sources.
public enum ErrorCode: UInt16, CaseIterable, Sendable {
  case unknown = 0
  case notFound = 1
  case illegalArgument = 2
  case notImplemented = 3
  case notValid = 4
  case failed = 5
  case queryNotSupported = 6
  case dataSerialization = 7
  case malformed = 16
  case unknownOperation = 17
  case frameLength = 18
  case helloExpected = 19
  case versionNotSupported = 20
  case storeUnknown = 21
  case storeExists = 22
  case conditionFailed = 23
  case keyInvalid = 24
  case valueTooLarge = 25
  case tooManyRequests = 26
  case tooManyStores = 27
  case tooManyConnections = 28
  case storeFull = 29
  case shuttingDown = 30
  case timedOut = 31
  case answerExpired = 32
  case cancelled = 33
  case storeReadOnly = 34
  case valueDamaged = 35
  case changesLost = 36
  case notPermitted = 37
  case queryStopped = 38
  case indexExists = 39
  case tooManyIndexes = 40
  case indexUnknown = 41
  case uploadUnknown = 42
  case storeDamaged = 43
  case notLeader = 44

  /// The outcome of a request that fails with the code.
  public var outcome: Outcome {
    switch self {
    case .unknown, .failed: .unknown
    case .tooManyRequests, .tooManyConnections, .storeFull, .shuttingDown, .timedOut, .answerExpired,
      .notLeader:
      .notExecuted
    default: .rejected
    }
  }
}
