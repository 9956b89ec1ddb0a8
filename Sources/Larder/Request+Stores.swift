import Wire

struct PingRequest: Request {
  static let operation = Wire.Operation.ping
  static let form = ReplyForm.empty
  static let isRead = true

  var measure: RequestMeasure { RequestMeasure() }
  func encode(into output: inout ByteBuffer) {}
}

struct StatsRequest: Request {
  static let operation = Wire.Operation.stats
  static let form = ReplyForm.body
  static let isRead = true

  var measure: RequestMeasure { RequestMeasure() }
  func encode(into output: inout ByteBuffer) {}
}

struct StoreOpenRequest: Request {
  static let operation = Wire.Operation.storeOpen
  static let form = ReplyForm.opened
  static let isRead = true
  let name: String

  var measure: RequestMeasure { RequestMeasure(body: name.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(name) }
}

struct StoreListRequest: Request {
  static let operation = Wire.Operation.storeList
  static let form = ReplyForm.body
  static let isRead = true

  var measure: RequestMeasure { RequestMeasure() }
  func encode(into output: inout ByteBuffer) {}
}

struct SlowLogRequest: Request {
  static let operation = Wire.Operation.slowLog
  static let form = ReplyForm.body
  static let isRead = true

  var measure: RequestMeasure { RequestMeasure() }
  func encode(into output: inout ByteBuffer) {}
}

struct ConnectionsRequest: Request {
  static let operation = Wire.Operation.connections
  static let form = ReplyForm.body
  static let isRead = true
  let most: UInt32

  var measure: RequestMeasure { RequestMeasure(body: 4) }
  func encode(into output: inout ByteBuffer) { output.append(most) }
}

struct StoreCreateRequest: Request {
  static let operation = Wire.Operation.storeCreate
  static let form = ReplyForm.empty
  static let isRead = false
  let creation: StoreCreation

  var measure: RequestMeasure { RequestMeasure(body: 1 + creation.name.utf8.count + creation.specification.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(creation) }
}

struct StoreDropRequest: Request {
  static let operation = Wire.Operation.storeDrop
  static let form = ReplyForm.empty
  static let isRead = false
  let name: String

  var measure: RequestMeasure { RequestMeasure(body: name.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(name) }
}
