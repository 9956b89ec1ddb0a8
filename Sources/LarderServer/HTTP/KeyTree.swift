import Documents
import Storage
import Wire

/// A request for a part of the tree of keys.
struct KeyTreeRequest {
  /// The maximum number of elements, which takes a fraction of a millisecond under the store's lock.
  private static let maxLimit = 250

  let prefix: [UInt8]
  /// What ends the name of an element that has others below it; empty for none.
  let delimiter: [UInt8]
  /// The name of the last element of the part before; empty for the first part.
  let last: [UInt8]
  /// The maximum number of elements.
  let limit: Int

  init(_ request: HTTPRequest, _ bytes: RawSpan) throws(CommandFailure) {
    let parameters = try HTTPParameters(
      request.route.query, of: bytes, names: ["prefix", "delimiter", "after", "limit"])
    (prefix, last) = (parameters.bytes("prefix"), parameters.bytes("after"))
    delimiter = parameters.has("delimiter") ? parameters.bytes("delimiter") : [UInt8(ascii: "/")]
    limit = try parameters.number("limit", in: 1...Self.maxLimit) ?? HTTPParameters.defaultLimit
    try HTTPRequest.checkSizes(prefix, last)
  }
}

/// The keys below a prefix as a folder shows them: those that go on behind a delimiter are one element, with their number.
struct KeyTree {
  /// A key, or what keys begin with.
  private struct Element {
    let name: [UInt8]
    /// The number of keys that begin with the name; nil for a key.
    let count: Int?
    let revision: UInt64
    let size: Int
  }

  private var elements: [Element] = []
  /// Whether more elements follow the last one.
  private(set) var isIncomplete = false

  fileprivate init() {}

  fileprivate mutating func add(folder name: [UInt8], count: Int) {
    elements.append(Element(name: name, count: count, revision: 0, size: 0))
  }

  fileprivate mutating func add(_ entry: EntryView) {
    elements.append(
      Element(name: unsafe Array(entry.key), count: nil, revision: entry.revision, size: entry.valueByteCount))
  }

  fileprivate var count: Int { elements.count }

  fileprivate mutating func setIncomplete() { isIncomplete = true }

  var json: [UInt8] {
    var text = Array("{\"elements\":[".utf8)
    for (index, element) in elements.enumerated() {
      text += index == 0 ? "{".utf8 : ",{".utf8
      let name: StaticString = element.count == nil ? "key" : "prefix"
      unsafe element.name.withUnsafeBytes { unsafe HTTPEntry.append(name, $0, to: &text) }
      if let count = element.count {
        text += ",\"count\":\(count)}".utf8
      } else {
        text += ",\"revision\":\"\(element.revision)\",\"size\":\(element.size)}".utf8
      }
    }
    return text + "],\"isComplete\":\(!isIncomplete)}".utf8
  }
}

extension EntryMap {
  /// Returns a part of the tree of keys.
  /// - Complexity: O(log *n*) for each element.
  mutating func keyTree(_ request: KeyTreeRequest, now: UInt64) throws(StorageError) -> KeyTree {
    let (prefix, delimiter, last) = (request.prefix, request.delimiter, request.last)
    var tree = KeyTree()
    var ranks = unsafe ranks(prefix: prefix.span.bytes, after: nil, reverse: false, now: now)
    if last.endOfFirst(delimiter, from: prefix.count) != nil {
      let below = unsafe self.ranks(prefix: last.span.bytes, after: nil, reverse: false, now: now)
      ranks = below.upperBound.clamped(to: ranks)..<ranks.upperBound
    } else if !last.isEmpty {
      ranks = unsafe self.ranks(prefix: prefix.span.bytes, after: last.span.bytes, reverse: false, now: now)
    }
    while let rank = ranks.first {
      guard tree.count < request.limit else {
        tree.setIncomplete()
        break
      }
      var folder: [UInt8]?
      _ = try scan(ranks: rank..<rank + 1, reverse: false, now: now) { entry in
        let key = unsafe Array(entry.key)
        if let end = key.endOfFirst(delimiter, from: prefix.count) {
          folder = Array(key[..<end])
        } else {
          tree.add(entry)
        }
        return true
      }
      guard let folder else {
        ranks = ranks.dropFirst()
        continue
      }
      let below = unsafe self.ranks(prefix: folder.span.bytes, after: nil, reverse: false, now: now)
      tree.add(folder: folder, count: below.count)
      ranks = below.upperBound..<ranks.upperBound
    }
    return tree
  }
}

extension Int {
  /// Returns the nearest number that is in a range, or its end.
  fileprivate func clamped(to range: Range<Int>) -> Int {
    Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
  }
}

extension [UInt8] {
  /// Returns where the first delimiter from a position on ends; nil if there is none.
  fileprivate func endOfFirst(_ delimiter: [UInt8], from start: Int) -> Int? {
    guard !delimiter.isEmpty, count >= start + delimiter.count else { return nil }
    return (start...count - delimiter.count).first { self[$0..<$0 + delimiter.count].elementsEqual(delimiter) }
      .map { $0 + delimiter.count }
  }
}
