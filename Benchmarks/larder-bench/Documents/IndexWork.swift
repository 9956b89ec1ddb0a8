/// A work on indexes, or on documents that are found with or without them.
enum IndexWork: Sendable {
  case build(fieldCount: Int, documents: Int)
  case memory(fields: [String], documents: Int)
  case open(indexCount: Int, documents: Int)
  case find(documents: Int)
  case scan(documents: Int)
  case sorted(skip: Int, documents: Int)
  case insert
  case replace
  case get(Neighbor, documents: Int)

  /// What the server does beside gets.
  enum Neighbor: String, CaseIterable, Sendable {
    case none = "nothing else"
    case finds = "eight finds without an index"
    case noneWithIndexes = "nothing else, under 3 indexes"
    case largePuts = "puts of 16 MiB under 3 indexes"
  }

  /// The fields of the seed's indexes.
  static let seedFields = ["name", "age", "pet"]
  static let seedField = ["name"]
  /// The fields of three indexes of a store.
  static let indexes = [["name"], ["age", "docNumber"], ["name", "age", "docNumber"]]

  /// The name of the work in figures.
  var name: String {
    switch self {
    case .build(let fields, let documents):
      "build an index over \(fields == 1 ? "1 field" : "\(fields) fields") of \(number(documents)) documents"
    case .memory(let fields, let documents):
      "index over \(fields.joined(separator: ", ")) of \(number(documents)) documents"
    case .open(let count, let documents):
      "open a log store of \(number(documents)) documents with \(count == 0 ? "no" : "\(count)") indexes"
    case .find(let documents): "find \(DocumentsBench.page) of \(number(documents)) by equality of 3 indexed fields"
    case .scan(let documents): "find \(DocumentsBench.page) of \(number(documents)) by a comparison, without an index"
    case .sorted(let skip, let documents):
      "find \(DocumentsBench.page) of \(number(documents)) in the order of an index, skip \(number(skip))"
    case .insert: "put a new document under 3 indexes"
    case .replace: "put a document in place of another under 3 indexes"
    case .get(let neighbor, let documents): "get of \(number(documents)) documents beside \(neighbor.rawValue)"
    }
  }

  func figure(_ quantity: Quantity, of contender: String = Contender.larder, _ values: [Double]) -> MeasuredFigure {
    MeasuredFigure(name, quantity, of: contender, values)
  }

  private func number(_ count: Int) -> String { count < 100 ? "\(count)" : grouped(Double(count)) }
}

extension Quantity {
  static let buildTime = Quantity("time until the index is complete", "ms")
  static let memory = Quantity("memory a document", "bytes")
  static let firstGet = Quantity("time until the first get", "s")
  static let complete = Quantity("time until the indexes are complete", "s")
  static let completeAfterOpening = Quantity("time from the end of opening until the indexes are complete", "s")
  static let findTime = Quantity("time a find", "µs")
  static let scanTime = Quantity("time a find of all documents", "ms")
  static let scanCPU = Quantity("server CPU a find of all documents", "ms")
  static let pipelinedCPU = Quantity("server CPU a find, 16 pipelined", "µs")
  static let singleCPU = Quantity("server CPU a find, one at a time", "µs")
  static let putTime = Quantity("time a put", "µs")
}
