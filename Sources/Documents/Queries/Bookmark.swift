/// The end of a page of a query's result, as text that the next page's query has.
///
/// It holds the sort key of the page's last document. The next page starts with the first document that follows this
/// key, whatever was written in between.
struct Bookmark {
  let key: [UInt8]
  private let queryHash: UInt64

  init(after key: [UInt8], of query: DocumentQuery) { self.init(after: key, queryHash: Self.hash(of: query)) }

  /// - Parameter queryHash: What `hash(of:)` returns for the query.
  init(after key: [UInt8], queryHash: UInt64) {
    self.key = key
    self.queryHash = queryHash
  }

  /// - Throws: `SelectorError` if the text isn't a bookmark of the query.
  init(_ text: String, of query: DocumentQuery) throws(SelectorError) {
    guard let bytes = Base64URL.decode(text), bytes.count > 8 else {
      throw SelectorError(.badBookmark, "this is not a bookmark; use the one that came with the last page")
    }
    queryHash = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    guard queryHash == Self.hash(of: query) else {
      throw SelectorError(.badBookmark, "the bookmark belongs to a query with another selector or sort")
    }
    key = Array(bytes[8...])
  }

  var text: String {
    let hash = (0..<8).map { UInt8(truncatingIfNeeded: queryHash >> UInt64(56 - 8 * $0)) }
    return Base64URL.encode(hash + key)
  }

  /// The hash of what bookmarks depend on.
  static func hash(of query: DocumentQuery) -> UInt64 {
    StableHash.of(DocumentQuery(query.selector, sort: query.sort).description.utf8)
  }
}

/// Base 64 with the alphabet for URLs and without padding (RFC 4648 §5).
enum Base64URL {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let word = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
      for index in 0...group.count { text.append(alphabet[Int(word >> UInt32(18 - 6 * index) & 63)]) }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns nil for text that `encode` doesn't make.
  static func decode(_ text: String) -> [UInt8]? {
    var (bytes, word, bitCount) = ([UInt8](), UInt32(0), 0)
    for character in text.utf8 {
      guard let value = alphabet.firstIndex(of: character) else { return nil }
      word = word << 6 | UInt32(value)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: word >> UInt32(bitCount)))
      }
    }
    return encode(bytes) == text ? bytes : nil
  }
}
