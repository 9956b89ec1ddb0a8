import Storage
import Wire

/// Commands on lists, which Larder's own clients write.
extension RESPRun {
  /// Returns the elements of a list; nil if there is no entry.
  private mutating func elements(_ key: RawSpan, _ map: inout EntryMap) throws(RESPFailure) -> [[UInt8]]? {
    guard let entry = entry(key, &map) else { return nil }
    guard case .list = entry.kind else { throw .wrongType }
    return try withValue(of: entry) { ListValue.decode($0) } ?? []
  }

  mutating func listLength(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    replies.bytes.appendRESP(try elements(bytes.extracting(request.word(1, bytes)), &map)?.count ?? 0)
  }

  mutating func listElement(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard let elements = try elements(bytes.extracting(request.word(1, bytes)), &map) else {
      return replies.bytes.appendRESPNull(version)
    }
    guard let position = bytes.extracting(request.word(2, bytes)).decimalNumber else { throw .notAnInteger }
    let index = position < 0 ? position &+ elements.count : position
    guard elements.indices.contains(index) else { return replies.bytes.appendRESPNull(version) }
    replies.bytes.appendRESP(bulk: elements[index])
  }

  mutating func listRange(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let (first, last) = try bounds(request, bytes)
    let elements = try elements(bytes.extracting(request.word(1, bytes)), &map) ?? []
    let range = Self.range(from: first, through: last, count: elements.count)
    replies.bytes.appendRESP(arrayOf: range.count)
    for element in elements[range] { replies.bytes.appendRESP(bulk: element) }
  }
}
