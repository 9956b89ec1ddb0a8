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

struct ClusterRequest: BodilessRequest {
  static let operation = Wire.Operation.cluster
  static let form = ReplyForm.body
}

struct StoreMoveRequest: ServerRequest {
  static let operation = Wire.Operation.storeMove
  static let form = ReplyForm.empty
  private let move: StoreMove

  init(move: StoreMove) {
    self.move = move
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: 1 + move.name.utf8.count + move.node.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(move) }
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

struct StoreCreateRequest: ServerRequest {
  static let operation = Wire.Operation.storeCreate
  static let form = ReplyForm.empty
  private let creation: StoreCreation

  init(creation: StoreCreation) {
    self.creation = creation
  }

  var measure: RequestMeasure {
    RequestMeasure(bodySize: 1 + creation.name.utf8.count + creation.specification.utf8.count)
  }
  func encode(into output: inout ByteBuffer) { output.append(creation) }
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
