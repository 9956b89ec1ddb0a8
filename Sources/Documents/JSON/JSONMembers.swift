/// The members of a JSON object, by their places in its text, so that they can be read or copied from there.
///
/// One value reads many objects, one after the other, and reuses its memory.
package struct JSONMembers: Sendable {
  /// A member by its place.
  package struct Member: Sendable {
    /// The name, without its quotes.
    package let name: Range<Int>
    package let nameHasEscapes: Bool
    package let value: Range<Int>

    package var quotedName: Range<Int> { name.lowerBound - 1..<name.upperBound + 1 }
  }

  /// The members in their order, also those with the same name.
  package private(set) var all: [Member] = []

  package init() {}

  /// Reads the members of text that is one object.
  /// - Throws: `JSONError` for the first byte that is wrong. `all` is undefined then.
  /// - Complexity: O(*n*) in one pass.
  package mutating func read(_ text: Span<UInt8>, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    all.removeAll(keepingCapacity: true)
    try JSON.scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
      guard scanner.peek() == UInt8(ascii: "{") else { throw scanner.failure(.object) }
      guard limits.maxDepth > 0 else { throw scanner.failure(.lessNesting) }
      scanner.move(to: scanner.position + 1)
      if scanner.take(UInt8(ascii: "}")) { return }
      repeat {
        let (name, hasEscapes) = try scanner.takeName()
        all.append(Member(name: name, nameHasEscapes: hasEscapes, value: try scanner.skipValue(depth: 1)))
      } while scanner.take(UInt8(ascii: ","))
      guard scanner.take(UInt8(ascii: "}")) else { throw scanner.failure(.commaOrBrace) }
    }
  }
}
