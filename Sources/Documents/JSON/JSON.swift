/// Functions on JSON text (RFC 8259), which is read in place.
public enum JSON {
  /// Checks that text is JSON: one value in strict RFC 8259, valid UTF-8, and no half surrogate pairs.
  /// - Throws: `JSONError` for the first byte that is wrong.
  /// - Complexity: O(*n*) in one pass; no allocation.
  public static func validate(_ text: Span<UInt8>, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    try scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
      _ = try scanner.skipValue()
    }
  }

  /// Whether text is one JSON object: a document.
  /// - Complexity: O(*n*) in one pass; no allocation.
  public static func isObject(_ text: Span<UInt8>, limits: JSONLimits = JSONLimits()) -> Bool {
    do throws(JSONError) {
      try scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
        guard scanner.peek() == UInt8(ascii: "{") else { throw scanner.failure(.object) }
        _ = try scanner.skipValue()
      }
      return true
    } catch { return false }
  }

  /// Runs a scanner over a text, all of which it has to pass.
  static func scan<Result>(
    _ text: Span<UInt8>, _ limits: JSONLimits, _ body: (inout JSONScanner) throws(JSONScanner.Failure) -> Result
  ) throws(JSONError) -> Result {
    guard text.count <= limits.maxByteCount else {
      throw JSONError(at: limits.maxByteCount, of: text, expected: .lessText)
    }
    var failure: JSONScanner.Failure
    do throws(JSONScanner.Failure) {
      return unsafe try text.withUnsafeBytes { (bytes) throws(JSONScanner.Failure) in
        var scanner = unsafe JSONScanner(bytes, maxDepth: limits.maxDepth)
        let result = try body(&scanner)
        try scanner.expectEnd()
        return result
      }
    } catch {
      failure = error
    }
    throw JSONError(at: failure.offset, of: text, expected: failure.expected)
  }
}
