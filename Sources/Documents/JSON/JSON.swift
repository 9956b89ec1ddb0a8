/// Functions on JSON text (RFC 8259), which is read in place.
///
/// Text is one value, in strict JSON: no comments, no trailing commas, no byte order mark. Where the RFC leaves a
/// choice, this is ours:
///
/// - Numbers have any size and precision. Integers of 64 bits are exact; any other number is the nearest double, which
///   is an infinity beyond the range of doubles and zero below it.
/// - Text is UTF-8. UTF-16, invalid UTF-8 (overlong forms and surrogates included) and escapes for half of a surrogate
///   pair are errors; every other character can occur in a string, also NUL and noncharacters.
/// - If members of an object have the same name, the last one counts.
/// - Arrays and objects are nested up to `JSONLimits.maxDepth` levels deep.
public enum JSON {
  /// Checks that text is JSON.
  /// - Throws: `JSONError` for the first byte that is wrong.
  /// - Complexity: O(*n*) in one pass, without allocations unless values are nested deeply.
  public static func validate(_ text: Span<UInt8>, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    try scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
      _ = try scanner.skipValue()
    }
  }

  /// Returns a Boolean value that indicates whether text is one JSON object: a document.
  /// - Complexity: O(*n*) in one pass, without allocations unless values are nested deeply.
  public static func isObject(_ text: Span<UInt8>, limits: JSONLimits = JSONLimits()) -> Bool {
    do throws(JSONError) {
      try scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
        guard scanner.peek() == UInt8(ascii: "{") else { throw scanner.failure(.object) }
        _ = try scanner.skipValue()
      }
      return true
    } catch { return false }
  }

  /// Returns the places of the elements of text that is one array.
  /// - Throws: `JSONError` for the first byte that is wrong.
  /// - Complexity: O(*n*) in one pass.
  package static func elements(
    of text: Span<UInt8>, limits: JSONLimits = JSONLimits()
  ) throws(JSONError) -> [Range<Int>] {
    try scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
      guard scanner.peek() == UInt8(ascii: "[") else { throw scanner.failure(.array) }
      guard limits.maxDepth > 0 else { throw scanner.failure(.lessNesting) }
      scanner.move(to: scanner.position + 1)
      var elements: [Range<Int>] = []
      if scanner.take(UInt8(ascii: "]")) { return elements }
      repeat { elements.append(try scanner.skipValue(depth: 1)) } while scanner.take(UInt8(ascii: ","))
      guard scanner.take(UInt8(ascii: "]")) else { throw scanner.failure(.commaOrBracket) }
      return elements
    }
  }

  /// Runs a scanner over a text, and checks that it passes all of it.
  static func scan<Result>(
    _ text: Span<UInt8>, _ limits: JSONLimits, _ body: (inout JSONScanner) throws(JSONScanner.Failure) -> Result
  ) throws(JSONError) -> Result {
    guard text.count <= limits.maxByteCount else {
      throw JSONError(at: limits.maxByteCount, of: text, expected: .lessText)
    }
    var failure: JSONScanner.Failure
    do throws(JSONScanner.Failure) {
      return unsafe try text.withUnsafeBytes { (bytes) throws(JSONScanner.Failure) in
        var scanner = JSONScanner(unsafe JSONText(bytes), maxDepth: limits.maxDepth)
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
