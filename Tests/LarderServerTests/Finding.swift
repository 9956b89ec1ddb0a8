import Documents
import Platform
import Storage
import TestSupport
import Testing
import Wire

/// The reply to a find.
struct FoundReply {
  let documents: [TestEntry]
  let result: FindResult
  /// The sizes of its frames, in bytes.
  let frameSizes: [Int]

  var keys: [String] { documents.map(\.text) }

  /// - Parameter frames: The frames of the reply, in order.
  init(_ frames: [Reply]) throws {
    var documents: [TestEntry] = []
    var result: FindResult?
    for frame in frames {
      try #require(frame.isDone && result == nil, "\(frame)")
      var offset = 0
      while offset < frame.body.count {
        if let record = unsafe EntryRecord(frame.body.span.bytes, at: offset) {
          try #require(record.kind == .single)
          documents.append(
            TestEntry(
              isPresent: true, key: Array(frame.body[record.key]), value: Array(frame.body[record.value]),
              revision: record.revision, expiry: record.expiry))
          offset = record.end
        } else {
          result = unsafe FindResult(frame.body.span.bytes, at: offset)
          try #require(result != nil, "\(frame)")
          offset = frame.body.count
        }
      }
    }
    self.documents = documents
    self.result = try #require(result)
    frameSizes = frames.map(\.size)
  }
}

extension TestClient {
  /// Sends a find and returns its reply. The credit must suffice.
  func find(
    _ selector: String = "", sort: String = "", limit: UInt32? = nil, skip: UInt64 = 0, fields: String = "",
    bookmark: String = "", countOnly: Bool = false, index: String? = nil, id: UInt32 = 900
  ) throws -> FoundReply {
    try send(
      Request.find(
        id: id, countOnly: countOnly, limit: limit, skip: skip, selector: selector, sort: sort, fields: fields,
        bookmark: bookmark, index: index))
    return try FoundReply(try receiveReplyStream(id))
  }

  func find(_ query: DocumentQuery) throws -> FoundReply {
    let json = query.json
    return try find(
      json["selector"]!.description, sort: json["sort"]?.description ?? "",
      limit: query.limit.map { UInt32(clamping: $0) }, skip: UInt64(query.skip),
      fields: json["fields"]?.description ?? "", bookmark: query.bookmark ?? "")
  }

  /// Sends an aggregation and returns its reply. The credit must suffice.
  func aggregate(_ selector: String, _ aggregation: String) throws -> (rows: [DocumentGroup], result: FindResult) {
    try send(Request.aggregate(id: 902, selector: selector, aggregation: aggregation))
    let reply = try FoundReply(try receiveReplyStream(902))
    let rows = try reply.documents.map { row in
      #expect(row.key.isEmpty && row.revision == 0 && row.expiry == 0)
      return try #require(DocumentGroup(json: JSONValue(parsing: row.value.span)))
    }
    return (rows, reply.result)
  }

  /// Updates the documents that match, or deletes them if there is no update.
  func change(_ selector: String, _ update: String? = nil, dryRun: Bool = false) throws -> MatchingChanges {
    try send(Request.change(id: 903, selector: selector, update: update, dryRun: dryRun))
    let reply = try receive(within: 30)
    try #require(reply.id == 903 && !reply.more)
    return try #require(unsafe MatchingChanges(reply.body.span.bytes), "\(reply)")
  }

  /// Puts documents `{"n":0}`, `{"n":1}`, … with an additional member of `size` bytes, in one commit. Their keys are
  /// `key1000000`, `key1000001`, …
  func putNumbered(_ count: Int, size: Int = 0, generation: Int = 0) throws {
    let filler = String(repeating: "x", count: size)
    let documents = (0..<count).map { number in
      (key: "key\(1_000_000 + number)", value: Array(#"{"n":\#(number),"g":\#(generation),"x":"\#(filler)"}"#.utf8))
    }
    let reply = try call(Request.putMany(documents, id: 901))
    try #require(reply.isDone, "\(reply)")
  }
}

/// A selector that takes long to evaluate.
let hostileSelector = #"{"$or":[\#((0..<200).map { #"{"x":{"$regex":"q+\#($0)$"}}"# }.joined(separator: ","))]}"#

/// Stores of every engine, empty, in a folder of their own.
final class StoresOfAllEngines {
  private let folder: TemporaryFolder
  let stores: [Store]

  init() throws {
    let folder = try TemporaryFolder()
    let data = try DataDirectory.open(folder.file("data"))
    stores = try [EngineKind].builtIn.map { engine in
      let name = try StoreName(engine.name)
      guard engine.isDurable else { return Store(name: name, engine: engine) }
      let description = StoreDescription(name: name, engine: engine)
      try data.create(description)
      return try Store.open(description, in: data).store
    }
    self.folder = folder
  }
}

/// Random documents and queries. Values are few, so that many of them are equal.
struct RandomQueries {
  private var random: SeededGenerator

  init(_ random: SeededGenerator) { self.random = random }

  mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
  mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(elements.count)] }

  private mutating func value(depth: Int = 1) -> JSONValue {
    switch number(depth > 0 ? 8 : 5) {
    case 0: return .null
    case 1: return .bool(number(2) == 0)
    case 2, 3: return .integer(Int64(number(5)))
    case 4: return .string(pick(["", "a", "b", "é", "\0"]))
    case 5, 6: return .array((0..<number(3)).map { _ in value(depth: depth - 1) })
    default: return ["b": value(depth: depth - 1)]
    }
  }

  /// Returns the value of an entry: mostly a document.
  mutating func text() -> String {
    if number(12) == 0 { return pick(["", "{", "[]", "null", #"{"a":1}x"#, " ", #"{"a":1,}"#]) }
    var object = JSONObject()
    for name in ["a", "b", "c"] where number(3) > 0 { object[name] = value() }
    if number(8) == 0 { object["x"] = .string(String(repeating: "x", count: pick([100, 33_000, 70_000, 300_000]))) }
    return JSONValue.object(object).description
  }

  private mutating func path() -> FieldPath { FieldPath(pick(["a", "b", "c", "a.b", "b.0", "_id", "_rev"]))! }

  mutating func paths() -> [FieldPath] { (0..<number(3)).map { _ in path() } }

  private mutating func selector(depth: Int = 2) -> Selector {
    switch number(depth > 0 ? 8 : 5) {
    case 0: return .field(path(), .exists())
    case 1, 2:
      return .field(path(), pick([.greater(value()), .lessOrEqual(value()), .notEqual(value()), .equal(value())]))
    case 3: return .field("_id", .greater(.string("key \(number(40))")))
    case 4: return .all
    case 5: return selector(depth: depth - 1) && selector(depth: depth - 1)
    case 6: return selector(depth: depth - 1) || selector(depth: depth - 1)
    default: return !selector(depth: depth - 1)
    }
  }

  mutating func query() -> DocumentQuery {
    var query = DocumentQuery(selector())
    if number(2) == 0 { query.sort = (0...number(2)).map { _ in SortField(path(), pick([.ascending, .descending])) } }
    if number(3) == 0 { query.skip = number(6) }
    if number(2) == 0 { query.limit = number(12) }
    if number(3) == 0 { query.fields = (0...number(2)).map { _ in path() } }
    return query
  }
}

/// A selector that takes minutes for the document of `putMonster`.
let monstrousSelector =
  #"{"a":{"$or":[\#((0..<9_000).map { #"{"$lt":-\#($0)}"# }.joined(separator: ","))]}}"#

extension TestClient {
  /// Puts a document with an array of 200,000 numbers.
  func putMonster() throws {
    let numbers = (0..<200_000).map(String.init).joined(separator: ",")
    #expect(try call(Request.put("monster", Array(#"{"a":[\#(numbers)]}"#.utf8), id: 899)).isDone)
  }
}
