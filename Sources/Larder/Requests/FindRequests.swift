import Documents
import Wire

/// A request for the documents that a query finds, for an explanation of how they are found, or for the number of
/// documents that match a selector.
struct FindDocumentsRequest: ServerRequest {
  static let operation = Wire.Operation.find
  static let form = ReplyForm.stream
  private let isCountOnly: Bool
  private let isExplained: Bool
  private let limit: UInt32?
  private let skip: UInt64
  private let selector: [UInt8]
  private let sort: [UInt8]
  private let fields: [UInt8]
  private let bookmark: [UInt8]
  private let index: String?
  private let time: UInt32?

  /// - Parameters:
  ///   - index: The name of the index to use; nil to let the server choose.
  ///   - time: How long it may take, in milliseconds; nil for the server's default.
  /// - Throws: `illegalArgument` if `skip` or `limit` of the query is negative, or no index can have the name.
  init(_ query: DocumentQuery, using index: String?, isExplained: Bool = false, time: UInt32?) throws(LarderError) {
    guard query.skip >= 0, query.limit ?? 0 >= 0 else {
      throw LarderError(.illegalArgument, outcome: .rejected, "skip and limit of a query must not be negative")
    }
    isCountOnly = false
    self.isExplained = isExplained
    self.time = time
    self.index = try Self.checked(index)
    // The maximum of the protocol is more than any store has.
    limit = query.limit.map { UInt32(clamping: $0) }
    skip = UInt64(query.skip)
    selector = query.selector.json.encoded()
    sort = query.sort.isEmpty ? [] : JSONValue.array(query.sort.map(\.json)).encoded()
    fields = query.fields.isEmpty ? [] : JSONValue.array(query.fields.map { .string($0.description) }).encoded()
    bookmark = query.bookmark.map { Array($0.utf8) } ?? []
  }

  /// - Throws: `illegalArgument` if no index can have the name.
  init(counting selector: Selector, using index: String?, time: UInt32?) throws(LarderError) {
    isCountOnly = true
    isExplained = false
    self.time = time
    self.index = try Self.checked(index)
    limit = nil
    skip = 0
    self.selector = selector.json.encoded()
    sort = []
    fields = []
    bookmark = []
  }

  private static func checked(_ index: String?) throws(LarderError) -> String? {
    // An empty name would let the server choose, and a longer one would not fit into the request.
    guard let index, !(1...DocumentIndex.maxNameByteCount).contains(index.utf8.count) else { return index }
    throw LarderError(
      .illegalArgument, outcome: .rejected, "the name of an index has 1 to \(DocumentIndex.maxNameByteCount) bytes")
  }

  var measure: RequestMeasure {
    let queryByteCount = selector.count + sort.count + fields.count
    return RequestMeasure(
      bodySize: FindRequest.headerSize + 4 + queryByteCount + bookmark.count + (index?.utf8.count ?? 0),
      features: time == nil ? 0 : Features.times)
  }

  func encode(into output: inout ByteBuffer) {
    unsafe output.appendFind(
      countOnly: isCountOnly, explain: isExplained, limit: limit, skip: skip, selector: selector.span.bytes,
      sort: sort.span.bytes, fields: fields.span.bytes, bookmark: bookmark.span.bytes, index: index,
      time: time)
  }
}
