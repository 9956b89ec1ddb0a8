/// A find without the values that its fields must have. Finds of the same shape have plans that differ only in these
/// values, so one kept plan serves all of them.
///
/// Reading a shape allocates nothing once the memory of earlier ones suffices.
package struct FindShape {
  /// What is the same in all finds of the shape.
  package private(set) var key: [UInt8] = []
  /// Where the fields' names are in the selector, in quotes, and where their values are.
  fileprivate private(set) var members: [(name: Range<Int>, value: Range<Int>)] = []

  /// The maximum size of the texts of a find that has a shape, and that of a value, in bytes.
  private static let maxByteCount = 1_024
  private static let maxValueByteCount = 256
  private static let maxMemberCount = 16

  package init() {}

  /// Reads the texts of a find.
  /// - Parameter isCounting: Whether the find counts documents.
  /// - Returns: Whether the find has a shape: its selector is an object with few members, whose values are numbers,
  ///   Booleans, or strings without escapes.
  package mutating func read(
    selector: Span<UInt8>, sort: Span<UInt8>, fields: Span<UInt8>, isCounting: Bool
  ) -> Bool {
    key.removeAll(keepingCapacity: true)
    members.removeAll(keepingCapacity: true)
    guard selector.count + sort.count + fields.count <= Self.maxByteCount else { return false }
    // Texts of JSON have no bytes such as those that are put between them.
    key.append(isCounting ? 1 : 0)
    append(sort)
    key.append(0)
    append(fields)
    key.append(0)
    return unsafe selector.withUnsafeBufferPointer { bytes in
      let text = unsafe JSONText(UnsafeRawBufferPointer(bytes))
      do throws(JSONText.Failure) { return try readMembers(of: text) } catch { return false }
    }
  }

  private mutating func append(_ text: Span<UInt8>) {
    unsafe text.withUnsafeBufferPointer { unsafe key.append(contentsOf: $0) }
  }

  private mutating func readMembers(of text: JSONText) throws(JSONText.Failure) -> Bool {
    var position = 0
    guard text.next(&position) == UInt8(ascii: "{") else { return false }
    position += 1
    if text.next(&position) == UInt8(ascii: "}") {
      position += 1
      return isEnd(position, of: text)
    }
    while true {
      let (name, hasEscapes) = try text.takeName(&position)
      // The names of operators begin with a dollar sign.
      guard !hasEscapes, !name.isEmpty, text[name.lowerBound] != UInt8(ascii: "$"), members.count < Self.maxMemberCount
      else { return false }
      let start = position
      guard start < text.end, let kind = Self.kind(ofValueAt: start, in: text) else { return false }
      if kind == UInt8(ascii: "s") {
        let (end, hasEscapes) = try text.endOfString(at: start)
        if hasEscapes { return false }
        position = end
      } else {
        position = try text.endOfValue(at: start, room: 0)
      }
      guard position - start <= Self.maxValueByteCount else { return false }
      unsafe key.append(contentsOf: text.bytes(name.lowerBound - 1..<name.upperBound + 1))
      key.append(kind)
      members.append((name, start..<position))
      let byte = text.next(&position)
      position += 1
      if byte == UInt8(ascii: "}") { break }
      guard byte == UInt8(ascii: ",") else { return false }
    }
    return isEnd(position, of: text)
  }

  /// Whether nothing but white space follows.
  private func isEnd(_ position: Int, of text: JSONText) -> Bool {
    var position = position
    _ = text.next(&position)
    return position == text.end
  }

  /// Where the id is in the selector, without its quotes, if it is all that the find is about; otherwise nil.
  package var id: Range<Int>? {
    // Neither sort nor fields, and one member.
    guard key.count == Self.idKeyCount, members.count == 1, key.span.extracting(3...).order(Self.idKey.span) == 0 else {
      return nil
    }
    return members[0].value.dropFirst().dropLast()
  }

  /// What the key of such a find ends with, after the mark of counting and two ends of texts.
  private static let idKey = Array("\"\(Document.idName)\"s".utf8)
  private static let idKeyCount = 3 + idKey.count

  /// Returns what kind of value begins at a place; nil for one that no shape has.
  private static func kind(ofValueAt start: Int, in text: JSONText) -> UInt8? {
    switch text[start] {
    case UInt8(ascii: "\""): UInt8(ascii: "s")
    case UInt8(ascii: "t"), UInt8(ascii: "f"): UInt8(ascii: "b")
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): UInt8(ascii: "n")
    default: nil
    }
  }

  /// Returns the member of a field's path; nil if there is none, or several that are written alike.
  fileprivate func member(of path: FieldPath, in selector: Span<UInt8>) -> Int? {
    var found: Int?
    for (number, member) in members.enumerated() {
      let name = unsafe selector.extracting(member.name).withUnsafeBufferPointer {
        unsafe String(decoding: $0, as: UTF8.self)
      }
      guard let names = FieldPath(name)?.names, names.elementsEqual(path.names, by: { $0.hasSameScalars(as: $1) })
      else { continue }
      guard found == nil else { return nil }
      found = number
    }
    return found
  }

  /// Appends the order key of a member's value.
  fileprivate func appendKey(
    ofMember number: Int, of selector: Span<UInt8>, to key: inout [UInt8], isDescending: Bool
  ) {
    let start = key.count
    unsafe selector.extracting(members[number].value).withUnsafeBufferPointer { value in
      unsafe OrderKey.append(SourceValue(value), to: &key)
    }
    if isDescending { OrderKey.complement(&key, from: start) }
  }

  fileprivate var memberCount: Int { members.count }
}

/// A plan for all finds of a shape. It reads the keys of an index that begin with the find's values. Each key stands for
/// one document of the result, and no two for the same one; the keys are in the order of the result.
package struct KeptPlan: Sendable {
  /// The fields to return; nil for whole documents.
  package let projection: EntryProjection?
  /// Whether to read the keys backwards.
  package let isReversed: Bool
  private let pageEnd: PageEnd
  private let sort: [SortField]
  /// The hash of the queries of the shape for bookmarks, if there is only one; otherwise nil.
  private let queryHash: UInt64?
  /// Which of the shape's members have the values of the index's first fields.
  private let members: [(number: Int, isDescending: Bool)]

  /// Keeps the plan of a find, if it is of that kind.
  /// - Parameters:
  ///   - shape: That of the find, whose selector this is.
  ///   - isCounting: Whether the order doesn't matter.
  /// - Returns: nil if the plan is of another kind, or depends on the values in some other way.
  package init?(
    _ plan: FindPlan, of query: DocumentQuery, _ shape: FindShape, _ selector: Span<UInt8>, by index: PlannedIndex,
    isCounting: Bool
  ) {
    guard plan.isExact, plan.isOrdered || isCounting, plan.groupFieldCount == nil, index.index.selector == nil,
      index.multiFields == 0, index.overflowCount == 0, case .index(_, let ranges) = plan.source, ranges.count == 1
    else { return nil }
    var members: [(Int, Bool)] = []
    for field in IndexLayout(index.index).fields.prefix(shape.memberCount) {
      guard let number = shape.member(of: field.path, in: selector) else { return nil }
      members.append((number, field.isDescending))
    }
    guard members.count == shape.memberCount else { return nil }
    self.members = members
    projection = query.fields.isEmpty ? nil : EntryProjection(query.fields)
    isReversed = plan.isReversed
    sort = query.sort
    pageEnd = PageEnd(query.sort)
    queryHash = shape.memberCount == 0 ? Bookmark.hash(of: query) : nil
    // What the planner knows and this doesn't shows here.
    var bounds = KeyBounds()
    makeBounds(of: shape, selector, &bounds)
    guard bounds.lower == ranges[0].lower, bounds.upper == ranges[0].upper ?? [] else { return nil }
  }

  /// Returns the bookmark of the page that follows one which ends with an entry.
  /// - Returns: nil if the selector is malformed.
  package func bookmark(after entry: StoredEntry, _ selector: Span<UInt8>) -> String? {
    if let queryHash { return pageEnd.bookmark(after: entry, queryHash: queryHash) }
    do throws(SelectorError) {
      let query = DocumentQuery(try Selector(parsing: selector), sort: sort)
      return pageEnd.bookmark(after: entry, queryHash: Bookmark.hash(of: query))
    } catch { return nil }
  }

  /// Makes the range of keys for a find of the shape.
  package func makeBounds(of shape: FindShape, _ selector: Span<UInt8>, _ bounds: inout KeyBounds) {
    bounds.makePrefix { key in
      for (number, isDescending) in members {
        shape.appendKey(ofMember: number, of: selector, to: &key, isDescending: isDescending)
      }
    }
  }
}

/// A range of keys that begin with the same bytes, in memory that is used again.
package struct KeyBounds {
  package private(set) var lower: [UInt8] = []
  /// The first key behind the range; empty if there is none.
  package private(set) var upper: [UInt8] = []

  package init() {}

  /// - Parameter append: Appends what the keys begin with. With nothing, all keys but the overflow key are in the range.
  fileprivate mutating func makePrefix(_ append: (inout [UInt8]) -> Void) {
    lower.removeAll(keepingCapacity: true)
    append(&lower)
    upper.removeAll(keepingCapacity: true)
    upper += lower
    if lower.isEmpty { lower += KeyRange.allKeys.lower }
    while let last = upper.popLast() {
      if last == .max { continue }
      upper.append(last + 1)
      return
    }
  }
}

/// The plans that are kept for shapes of finds. When there are too many, the least recently used ones are dropped.
package struct KeptPlans<Index: AnyObject & Sendable>: Sendable {
  package struct Element: Sendable {
    package let plan: KeptPlan
    package let index: Index
  }

  private var recent: [[UInt8]: Element] = [:]
  private var older: [[UInt8]: Element] = [:]

  /// The number of recent plans. When there are that many, the older ones are dropped, and these become the older ones.
  package static var maxCount: Int { 128 }

  package init() {}

  package var count: Int { recent.count + older.count }

  /// Returns the plan for a shape; nil if none is kept.
  package mutating func find(_ shape: FindShape) -> Element? {
    if let element = recent[shape.key] { return element }
    guard let element = older.removeValue(forKey: shape.key) else { return nil }
    keep(element, for: shape.key)
    return element
  }

  package mutating func keep(_ plan: KeptPlan, by index: Index, for shape: FindShape) {
    keep(Element(plan: plan, index: index), for: shape.key)
  }

  private mutating func keep(_ element: Element, for key: [UInt8]) {
    if recent.count >= Self.maxCount { (recent, older) = ([:], recent) }
    recent[key] = element
  }

  package mutating func removeAll() { (recent, older) = ([:], [:]) }
}
