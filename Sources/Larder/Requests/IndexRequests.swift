import Documents
import Wire

struct IndexEnsureRequest: ServerRequest {
  static let operation = Wire.Operation.indexEnsure
  static let form = ReplyForm.body
  private let definition: [UInt8]

  init(_ index: DocumentIndex) {
    definition = index.json.encoded()
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: definition.count) }
  func encode(into output: inout ByteBuffer) { output.append(definition) }
}

struct IndexDeleteRequest: ServerRequest {
  static let operation = Wire.Operation.indexDelete
  static let form = ReplyForm.empty
  private let name: String

  init(name: String) {
    self.name = name
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: name.utf8.count) }
  func encode(into output: inout ByteBuffer) { output.append(name) }
}

struct IndexListRequest: BodilessRequest {
  static let operation = Wire.Operation.indexList
  static let form = ReplyForm.body
}
