import Wire

struct PingRequest: BodilessRequest {
  static let operation = Wire.Operation.ping
  static let form = ReplyForm.empty
}

struct StatsRequest: BodilessRequest {
  static let operation = Wire.Operation.stats
  static let form = ReplyForm.body
}

struct StoreOpenRequest: ServerRequest {
  static let operation = Wire.Operation.storeOpen
  static let form = ReplyForm.openedStore
  private let name: String

  init(name: String) {
    self.name = name
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: name.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(name) }
}

struct StoreOpenStaleRequest: ServerRequest {
  static let operation = Wire.Operation.storeOpenStale
  static let form = ReplyForm.openedStore
  static let requiredFeatures = Features.clusters
  private let body: StaleOpenRequest

  init(name: String, maxStaleness: UInt32) { body = StaleOpenRequest(name: name, maxStaleness: maxStaleness) }

  var measure: RequestMeasure { RequestMeasure(bodySize: 4 + body.name.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(body) }
}

struct StoreListRequest: BodilessRequest {
  static let operation = Wire.Operation.storeList
  static let form = ReplyForm.body
}

struct SlowLogRequest: BodilessRequest {
  static let operation = Wire.Operation.slowLog
  static let form = ReplyForm.body
}

struct ConnectionsRequest: ServerRequest {
  static let operation = Wire.Operation.connections
  static let form = ReplyForm.body
  private let limit: UInt32

  init(limit: UInt32) {
    self.limit = limit
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: 4) }
  func encode(into output: inout ByteBuffer) { output.append(limit) }
}

struct WhoamiRequest: BodilessRequest {
  static let operation = Wire.Operation.whoami
  static let form = ReplyForm.body
}

struct TokenListRequest: BodilessRequest {
  static let operation = Wire.Operation.tokenList
  static let form = ReplyForm.body
}

struct ConsoleLinkRequest: BodilessRequest {
  static let operation = Wire.Operation.consoleLink
  static let form = ReplyForm.body
}

struct ClusterRequest: BodilessRequest {
  static let operation = Wire.Operation.cluster
  static let form = ReplyForm.body
}

struct RulesCheckRequest: ServerRequest {
  static let operation = Wire.Operation.rulesCheck
  static let form = ReplyForm.body
  private let question: [UInt8]

  /// - Parameter question: The question in JSON.
  init(question: [UInt8]) {
    self.question = question
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: question.count) }
  func encode(into output: inout ByteBuffer) { output.append(question) }
}

/// A request that names a store and something else.
protocol NamedStoreServerRequest: ServerRequest {
  var body: NamedStoreRequest { get }
}

extension NamedStoreServerRequest {
  static var form: ReplyForm { .empty }
  var measure: RequestMeasure { RequestMeasure(bodySize: 1 + body.name.utf8.count + body.argument.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(body) }
}

struct StoreCreateRequest: NamedStoreServerRequest {
  static let operation = Wire.Operation.storeCreate
  let body: NamedStoreRequest
}

struct StoreMoveRequest: NamedStoreServerRequest {
  static let operation = Wire.Operation.storeMove
  let body: NamedStoreRequest
}

struct StoreDropRequest: ServerRequest {
  static let operation = Wire.Operation.storeDrop
  static let form = ReplyForm.empty
  private let name: String

  init(name: String) {
    self.name = name
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: name.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(name) }
}
