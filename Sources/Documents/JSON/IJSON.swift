/// Recognizes I-JSON objects (RFC 7493): JSON objects in which, at every level, no two members have the same name. What
/// is looked for in their text needs no further checks, and is found where it is found first.
package struct IJSON: ~Copyable {
  /// Hashes of the names of the objects that are open, the innermost one's last.
  private var hashes: [UInt64] = []

  /// Up to how many names of an object are compared with each other, rather than sorted.
  private static let maxComparedCount = 24

  package init() {}

  /// Returns whether text is an I-JSON object. Seldom, and if names have escapes, it returns false for one.
  /// - Parameter budget: Once it is exhausted, the result is false.
  /// - Complexity: O(*n* log *n*) in the size of the text.
  package mutating func isObject(_ text: Span<UInt8>, _ budget: inout WorkBudget) -> Bool {
    // Names take some nanoseconds each, and other text takes one for each byte.
    guard budget.spend(1 &+ text.count / 8) else { return false }
    hashes.removeAll(keepingCapacity: true)
    return unsafe text.withUnsafeBufferPointer { bytes in
      let text = unsafe JSONText(UnsafeRawBufferPointer(bytes))
      var position = 0
      guard text.next(&position) == UInt8(ascii: "{") else { return false }
      do throws(JSONText.Failure) { position = try endOfValue(text, at: position, JSONLimits.deepest) } catch {
        return false
      }
      _ = text.next(&position)
      return position == text.end
    }
  }

  /// What is thrown where names are not unique.
  private func ambiguity(_ text: JSONText, at offset: Int) -> JSONText.Failure { text.failure(.name, at: offset) }

  /// How many levels are passed by recursion.
  private static let maxDepth = 64

  private mutating func endOfValue(
    _ text: JSONText, at start: Int, _ room: Int
  ) throws(JSONText.Failure) -> Int {
    guard start < text.end, text[start] | 0x20 == UInt8(ascii: "{") else {
      return try text.endOfValue(at: start, room: room)
    }
    // Text that is nested more deeply is looked at with all checks.
    guard room > JSONLimits.deepest - Self.maxDepth else { throw text.failure(.lessNesting, at: start) }
    return text[start] == UInt8(ascii: "{")
      ? try endOfObject(text, at: start, room) : try endOfArray(text, at: start, room)
  }

  private mutating func endOfObject(
    _ text: JSONText, at start: Int, _ room: Int
  ) throws(JSONText.Failure) -> Int {
    var position = start &+ 1
    if text.next(&position) == UInt8(ascii: "}") { return position &+ 1 }
    let firstName = hashes.count
    while true {
      let (name, hasEscapes) = try text.takeName(&position)
      if hasEscapes { throw ambiguity(text, at: name.lowerBound) }
      hashes.append(Self.hash(name, of: text))
      position = try endOfValue(text, at: position, room &- 1)
      let byte = text.next(&position)
      if byte == UInt8(ascii: "}") { break }
      guard byte == UInt8(ascii: ",") else { throw text.failure(.commaOrBrace, at: position) }
      position &+= 1
    }
    guard areUnique(from: firstName) else { throw ambiguity(text, at: start) }
    hashes.removeSubrange(firstName...)
    return position &+ 1
  }

  private mutating func endOfArray(
    _ text: JSONText, at start: Int, _ room: Int
  ) throws(JSONText.Failure) -> Int {
    var position = start &+ 1
    if text.next(&position) == UInt8(ascii: "]") { return position &+ 1 }
    while true {
      _ = text.next(&position)
      position = try endOfValue(text, at: position, room &- 1)
      let byte = text.next(&position)
      if byte == UInt8(ascii: "]") { return position &+ 1 }
      guard byte == UInt8(ascii: ",") else { throw text.failure(.commaOrBracket, at: position) }
      position &+= 1
    }
  }

  /// Returns a number that depends on all bytes of a name.
  @inline(__always)
  private static func hash(_ name: Range<Int>, of text: JSONText) -> UInt64 {
    var hash = UInt64(truncatingIfNeeded: name.count)
    var position = name.lowerBound
    while position < name.upperBound {
      let left = name.upperBound &- position
      let word = text.word(at: position)
      hash =
        (hash ^ (left < 8 ? word & (1 &<< UInt64(truncatingIfNeeded: left &* 8) &- 1) : word)) &* 0x9E37_79B9_7F4A_7C15
      hash ^= hash &>> 29
      position &+= 8
    }
    return hash
  }

  /// Returns whether no two of the last hashes are equal.
  private mutating func areUnique(from start: Int) -> Bool {
    guard hashes.count - start > Self.maxComparedCount else {
      for index in start..<hashes.count {
        let hash = hashes[index]
        for other in start..<index where hashes[other] == hash { return false }
      }
      return true
    }
    hashes[start...].sort()
    for index in start + 1..<hashes.count where hashes[index] == hashes[index - 1] { return false }
    return true
  }
}
