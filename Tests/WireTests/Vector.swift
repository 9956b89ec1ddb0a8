import TestSupport
import Testing
import Wire

/// A golden vector: `Protocol/vectors/README.md`.
struct Vector: Decodable, Sendable, CustomTestStringConvertible {
  let name: String
  let hex: String
  let decodeOnly: Bool?
  let frame: Fields

  var bytes: [UInt8] { [UInt8](hex: hex) }
  var testDescription: String { name }

  static let requests = read("requests.json")
  static let replies = read("replies.json")

  private static func read(_ file: String) -> [Vector] {
    do {
      return try ProjectFiles.vectors(file)
    } catch {
      fatalError("\(file): \(error)")
    }
  }
}

/// The decoders of plain arrays, because a span can't be an argument inside `#expect`.
extension [UInt8] {
  func scanned(at offset: Int = 0, maxLength: Int) -> FrameScan {
    unsafe FrameScan(span.bytes, at: offset, maxLength: maxLength)
  }
  func write(at offset: Int = 0) -> WriteRecord? { unsafe WriteRecord(span.bytes, at: offset) }
  func entry(at offset: Int = 0) -> EntryRecord? { unsafe EntryRecord(span.bytes, at: offset) }
  func scanRequest(of operation: Wire.Operation) -> ScanRequest? { unsafe ScanRequest(span.bytes, of: operation) }
  var findRequest: FindRequest? { unsafe FindRequest(span.bytes) }
  var aggregateRequest: AggregateRequest? { unsafe AggregateRequest(span.bytes) }
  var changeMatchingRequest: ChangeMatchingRequest? { unsafe ChangeMatchingRequest(span.bytes) }
  var matchingChanges: MatchingChanges? { unsafe MatchingChanges(span.bytes) }
  var ensuredIndex: EnsuredIndex? { unsafe EnsuredIndex(span.bytes) }
  func findResult(at offset: Int = 0) -> FindResult? { unsafe FindResult(span.bytes, at: offset) }
  var isKey: Bool { unsafe Key.isValid(span.bytes) }
  var isListValue: Bool { unsafe ListValue.isValid(span.bytes) }
  var elements: [[UInt8]]? { unsafe ListValue.decode(span.bytes) }

  /// The bytes as a key list: the announced number of keys, the keys, and whether the list is complete.
  var keyList: (count: Int, keys: [[UInt8]], isComplete: Bool)? {
    guard var list = unsafe KeyList(span.bytes) else { return nil }
    var keys: [[UInt8]] = []
    while let key = unsafe list.next(span.bytes) { keys.append(Array(self[key])) }
    return unsafe (list.count, keys, list.isComplete(span.bytes))
  }
}
