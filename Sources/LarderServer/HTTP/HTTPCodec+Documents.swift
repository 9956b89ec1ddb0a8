import Documents
import Storage
import Wire

/// Requests on documents and indexes.
extension HTTPCodec {
  static func executeOnDocuments(
    _ operation: Operation, _ request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection, _ store: Store,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    switch operation {
    case .indexList:
      replies.bytes.appendResponse(
        json: Array("{\"indexes\":".utf8) + executor.indexReports(of: store) + "}".utf8, isHead: request.method == .head
      )
      return .done
    case .indexEnsure:
      let index = try DocumentIndex(parsingCommand: bytes.extracting(request.body).toArray())
      return HTTPSession().change(
        .ensureIndex(index, of: store.name), request, of: &connection, store: store.name.text, on: &executor)
    case .indexDelete:
      return HTTPSession().change(
        .deleteIndex(try request.indexName(bytes), of: store.name), request, of: &connection, store: store.name.text,
        on: &executor)
    default:
      let body = try documentRequest(operation, request, bytes)
      guard let documentRequest = unsafe DocumentRequest(operation, body.span.bytes) else {
        preconditionFailure("the body is valid")
      }
      return unsafe HTTPSession().startJob(
        documentRequest, request, body.span.bytes, of: &connection, store, on: &executor, into: &replies)
    }
  }

  /// Returns the body of a request of Larder's own protocol.
  private static func documentRequest(
    _ operation: Operation, _ request: HTTPRequest, _ bytes: RawSpan
  ) throws(CommandFailure) -> [UInt8] {
    var buffer = ByteBuffer()
    switch operation {
    case .find:
      let body = try HTTPBody(
        request, bytes,
        names: ["selector", "sort", "fields", "limit", "skip", "bookmark", "index", "count", "time"])
      let bookmark = Array((try body.string("bookmark") ?? "").utf8)
      let index = try body.string("index")
      guard index?.utf8.count ?? 0 <= DocumentIndex.maxNameByteCount else {
        throw CommandFailure(.indexUnknown, "the name of an index has at most \(DocumentIndex.maxNameByteCount) bytes")
      }
      let limit = try body.number("limit", in: 0...Int(UInt32.max)) ?? defaultFindLimit
      let (count, skip, time) = (
        try body.flag("count"), try body.number("skip", in: 0...Int.max) ?? 0, try body.time
      )
      unsafe buffer.appendFind(
        countOnly: count, explain: request.route.resource == .explain, limit: count ? nil : UInt32(limit),
        skip: UInt64(skip), selector: bytes.extracting(body.source("selector")),
        sort: bytes.extracting(body.source("sort")),
        fields: bytes.extracting(body.source("fields")), bookmark: bookmark.span.bytes, index: index, time: time)
    case .aggregate:
      let body = try HTTPBody(
        request, bytes, names: ["selector", "by", "compute", "sort", "limit", "time"])
      let aggregation = body.object(without: ["selector", "time"])
      unsafe buffer.appendAggregate(
        selector: bytes.extracting(body.source("selector")), aggregation: aggregation.span.bytes, time: try body.time)
    default:
      let body = try HTTPBody(request, bytes, names: ["selector", "update", "delete", "dryRun", "time"])
      let isDelete = try body.flag("delete")
      guard body.has("selector"), isDelete != body.has("update") else {
        throw CommandFailure(
          .illegalArgument, "an update has a 'selector' and either an 'update' or '\"delete\":true'")
      }
      buffer.appendChangeMatching(
        dryRun: try body.flag("dryRun"), selector: bytes.extracting(body.source("selector")),
        update: isDelete ? nil : bytes.extracting(body.source("update")), time: try body.time)
    }
    return buffer.toArray()
  }

  /// The number of documents that a find returns by default.
  private static let defaultFindLimit = 25
}

/// The body of a request: an object, of whose members some are passed on as they are, so that errors name their places in
/// the members' own texts.
struct HTTPBody {
  private var members: [(name: String, source: Range<Int>, bytes: [UInt8])] = []

  /// - Parameter names: The members that there may be.
  init(_ request: HTTPRequest, _ bytes: RawSpan, names: [String]) throws(CommandFailure) {
    try self.init(request.body, of: bytes, names: names)
  }

  /// - Parameters:
  ///   - source: Where the object is.
  ///   - names: The members that there may be.
  init(_ source: Range<Int>, of bytes: RawSpan, names: [String]) throws(CommandFailure) {
    var reader = JSONMembers()
    let text = Span<UInt8>(_bytes: bytes.extracting(source))
    do throws(JSONError) { try reader.read(text) } catch {
      throw CommandFailure(.illegalArgument, "this is not a JSON object: \(error)")
    }
    for member in reader.all {
      let quoted = text.extracting(member.quotedName)
      let name = String(decoding: JSONString.bytes(of: quoted) ?? [], as: UTF8.self)
      guard names.contains(name) else {
        throw CommandFailure(
          .illegalArgument, "there is no member '\(name)': there are \(names.joined(separator: ", "))")
      }
      guard !has(name) else { throw CommandFailure(.illegalArgument, "the member '\(name)' must not be repeated") }
      let place = source.lowerBound + member.value.lowerBound..<source.lowerBound + member.value.upperBound
      let value = text.extracting(member.value)
      members.append((name, place, unsafe value.withUnsafeBufferPointer { unsafe Array($0) }))
    }
  }

  func has(_ name: String) -> Bool { members.contains { $0.name == name } }

  /// The JSON of a member; nil if it isn't there.
  func value(_ name: String) -> [UInt8]? { members.first { $0.name == name }?.bytes }

  /// Where the value of a member is in the request; empty if it isn't there.
  func source(_ name: String) -> Range<Int> { members.first { $0.name == name }?.source ?? 0..<0 }

  /// Returns an object with all members but some.
  func object(without names: [String]) -> [UInt8] {
    let kept = members.filter { !names.contains($0.name) }.map { member in
      Array("\"\(member.name)\":".utf8) + member.bytes
    }
    return Array("{".utf8) + kept.joined(separator: [UInt8(ascii: ",")]) + "}".utf8
  }

  func string(_ name: String) throws(CommandFailure) -> String? {
    guard let value = value(name) else { return nil }
    guard let text = JSONString.bytes(of: value.span) else {
      throw CommandFailure(.illegalArgument, "'\(name)' is a string")
    }
    return String(decoding: text, as: UTF8.self)
  }

  func number(_ name: String, in range: ClosedRange<Int>) throws(CommandFailure) -> Int? {
    guard let value = value(name) else { return nil }
    guard let number = Int(digits: String(decoding: value, as: UTF8.self)[...]), range.contains(number) else {
      throw CommandFailure(
        .illegalArgument, "'\(name)' is a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func flag(_ name: String) throws(CommandFailure) -> Bool {
    guard let value = value(name) else { return false }
    switch String(decoding: value, as: UTF8.self) {
    case "true": return true
    case "false": return false
    default: throw CommandFailure(.illegalArgument, "'\(name)' is true or false")
    }
  }

  /// How long the request may take, in milliseconds; nil for as long as the server allows by default.
  var time: UInt32? {
    get throws(CommandFailure) { try number("time", in: 1...Int(UInt32.max)).map { UInt32($0) } }
  }
}
