import Wire

/// Whether a request is executed under its conditions: RFC 9110 §13.2.2.
enum HTTPVerdict {
  case execute
  /// The client has the entry already.
  case notModified
  /// - Parameter reason: Which condition doesn't hold.
  case conditionFailed(reason: String)
}

/// What a request asks for of a value.
enum HTTPRange {
  case whole
  /// A part that isn't empty.
  case part(Range<Int>)
  case notSatisfiable(reason: String)
}

/// The conditions of a request on an entry, whose entity tag is its revision in quotation marks.
extension HTTPRequest {
  /// Whether the outcome depends on more than the entry itself.
  var hasConditions: Bool {
    self[.ifMatch] != nil || self[.ifNoneMatch] != nil || method == .get && self[.range] != nil
  }

  /// Evaluates `If-Match`, and then `If-None-Match`.
  /// - Parameter revision: That of the entry; nil if there is none.
  func verdict(on revision: UInt64?, _ bytes: RawSpan) throws(CommandFailure) -> HTTPVerdict {
    var (isExpected, isKnown) = (true, false)
    if let field = self[.ifMatch] {
      // The strong comparison, to which weak tags are never equal.
      isExpected = try HTTPEntityTags.contain(revision, bytes.extracting(field), weakly: false)
    }
    if let field = self[.ifNoneMatch] {
      isKnown = try HTTPEntityTags.contain(revision, bytes.extracting(field), weakly: true)
    }
    // A request that fails without its conditions fails the same way with them: §13.2.1.
    guard method == .put || revision != nil else { return .execute }
    let entry = revision.map { "the entry has revision \($0)" } ?? "there is no entry"
    guard isExpected else {
      let expected = bytes.extracting(self[.ifMatch] ?? 0..<0).toString()
      let remark = expected.contains("W/") ? "; a weak tag never matches" : ""
      return .conditionFailed(reason: "\(entry), not \(expected.filter { $0 != "\"" })\(remark)")
    }
    guard isKnown else { return .execute }
    return method.isSafe ? .notModified : .conditionFailed(reason: "\(entry), which If-None-Match names")
  }

  /// Returns the range of a value to send: RFC 9110 §14.2.
  /// - Parameters:
  ///   - size: The size of the value, in bytes.
  ///   - revision: That of the entry.
  func range(ofValueWith size: Int, revision: UInt64, _ bytes: RawSpan) -> HTTPRange {
    guard method == .get, let field = self[.range] else { return .whole }
    // A date never matches, because entries have none.
    if let field = self[.ifRange], !HTTPEntityTags.isStrong(bytes.extracting(field), of: revision) { return .whole }
    return HTTPRange(bytes.extracting(field).toString(), size: size)
  }
}

extension HTTPRange {
  /// - Parameters:
  ///   - text: The value of the field `Range`.
  ///   - size: The size of the value, in bytes.
  init(_ text: String, size: Int) {
    let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    // Other units must be ignored.
    guard sides.count == 2, sides[0].lowercased() == "bytes" else {
      self = .whole
      return
    }
    let elements = sides[1].split(separator: ",").map { $0.trimming(" \t") }.filter { !$0.isEmpty }
    guard elements.count == 1 else {
      self = .notSatisfiable(reason: "a request has one range")
      return
    }
    let ends = elements[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Self.position(ends[0]), let last = Self.position(ends[1]) else {
      self = .notSatisfiable(reason: "a range is FIRST-, FIRST-LAST or -COUNT")
      return
    }
    self =
      switch (first, last) {
      case (nil, let count?) where count > 0: size == 0 ? .whole : .part(size - min(count, size)..<size)
      case (let first?, nil) where first < size: .part(first..<size)
      case (let first?, let last?) where first <= last && first < size: .part(first..<min(last, size - 1) + 1)
      default: .notSatisfiable(reason: "the value has \(size) bytes")
      }
  }

  /// Returns a position, or `Int.max` for a larger one; nil in an optional for no digits; nil if other characters are there.
  private static func position(_ digits: Substring) -> Int?? {
    guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return .none }
    return .some(digits.isEmpty ? nil : Int(digits) ?? .max)
  }
}

extension Substring {
  fileprivate func trimming(_ characters: String) -> Substring {
    var rest = self.drop { characters.contains($0) }
    while let last = rest.last, characters.contains(last) { rest.removeLast() }
    return rest
  }
}

/// Entity tags, and lists of them: RFC 9110 §8.8.3.
enum HTTPEntityTags {
  /// Whether a list of tags has that of a revision, or means any.
  /// - Parameters:
  ///   - revision: nil if there is no entry, which has no tag.
  ///   - weakly: Whether weak tags count.
  static func contain(_ revision: UInt64?, _ list: RawSpan, weakly: Bool) throws(CommandFailure) -> Bool {
    try contain(list, weakly: weakly, isAny: revision != nil) { tag in
      if let revision { tag.isDecimal(revision) } else { false }
    }
  }

  /// Whether a list of tags has one, or means any.
  /// - Parameters:
  ///   - isAny: The result if the list is `*`.
  ///   - isTag: Whether what is between the quotation marks of a tag is the one.
  static func contain(
    _ list: RawSpan, weakly: Bool, isAny: Bool, _ isTag: (RawSpan) -> Bool
  ) throws(CommandFailure) -> Bool {
    if list.isText("*") { return isAny }
    var (position, count, isFound) = (0, 0, false)
    while true {
      // Elements may be empty.
      while position < list.byteCount, " \t,".utf8.contains(list.byte(position)) { position += 1 }
      guard position < list.byteCount else { break }
      guard let tag = tag(in: list, at: position) else { throw malformed }
      position = tag.opaque.upperBound + 1
      if weakly || !tag.isWeak, isTag(list.extracting(tag.opaque)) { isFound = true }
      while position < list.byteCount, " \t".utf8.contains(list.byte(position)) { position += 1 }
      guard position == list.byteCount || list.byte(position) == UInt8(ascii: ",") else { throw malformed }
      count += 1
    }
    guard count > 0 else { throw malformed }
    return isFound
  }

  /// Whether a text is the strong tag of a revision.
  static func isStrong(_ text: RawSpan, of revision: UInt64) -> Bool {
    guard let tag = tag(in: text, at: 0), tag.opaque.upperBound + 1 == text.byteCount else { return false }
    return !tag.isWeak && text.extracting(tag.opaque).isDecimal(revision)
  }

  private static var malformed: CommandFailure {
    CommandFailure(.illegalArgument, "conditions have entity tags in quotation marks, as in If-Match: \"5\"")
  }

  /// Returns the tag that begins at a position, with the range of what is between its quotation marks.
  private static func tag(in text: RawSpan, at start: Int) -> (isWeak: Bool, opaque: Range<Int>)? {
    var position = start
    let isWeak = start + 1 < text.byteCount && text.extracting(start..<start + 2).isText("W/")
    if isWeak { position += 2 }
    guard position < text.byteCount, text.byte(position) == UInt8(ascii: "\"") else { return nil }
    let opaque = position + 1
    position = opaque
    while position < text.byteCount, text.byte(position) != UInt8(ascii: "\"") {
      guard text.byte(position) > 0x20 else { return nil }
      position += 1
    }
    return position < text.byteCount ? (isWeak, opaque..<position) : nil
  }
}

extension RawSpan {
  /// Whether the bytes are a positive number in the only way in which it is written.
  fileprivate func isDecimal(_ number: UInt64) -> Bool {
    var rest = number
    for index in (0..<byteCount).reversed() {
      guard rest > 0, byte(index) == UInt8(ascii: "0") + UInt8(rest % 10) else { return false }
      rest /= 10
    }
    return rest == 0 && byteCount > 0
  }
}
