/// The definition of an index: a name, the fields whose values are in the index, and which documents are.
///
///     try DocumentIndex(["name", .descending("age")])
///     try DocumentIndex(["age"], where: .field("pet.species", .equal("cat")), name: "ages of cats")
///
/// As JSON, an index is an object. `name` and `where` are optional:
///
///     {"name": "byName", "fields": ["name", {"age": "desc"}], "where": {"pet.species": "cat"}}
public struct DocumentIndex: Sendable {
  /// The name, which is unique among the indexes of the same documents: 1 to 128 bytes of UTF-8 without control
  /// characters.
  public let name: String
  /// The fields, each with its direction. There is at least one, and no path occurs twice.
  public let fields: [SortField]
  /// Which documents are in the index; nil if all are.
  public let selector: Selector?

  /// The maximum number of fields.
  public static let maxFieldCount = 32
  /// The maximum size of a name, in bytes.
  public static let maxNameByteCount = 128

  /// Creates a definition.
  /// - Parameters:
  ///   - fields: The fields, from 1 to 32. The entries of the index have their order.
  ///   - selector: Which documents are in the index; nil for all. It can't have `text`.
  ///   - name: The name; nil for one that depends on the fields and the selector only.
  /// - Throws: `DocumentIndexError` that names the place in the definition's JSON and the reason.
  public init(
    _ fields: [SortField], where selector: Selector? = nil, name: String? = nil
  ) throws(DocumentIndexError) {
    try Self.check(fields)
    self.fields = fields
    self.selector = try selector.flatMap { (selector) throws(DocumentIndexError) in try Self.checked(selector) }
    if let name { try Self.check(name) }
    self.name = name ?? Self.defaultName(of: fields, self.selector)
  }

  /// Creates a definition with ascending fields.
  /// - Parameters:
  ///   - fields: The paths of the fields, from 1 to 32.
  ///   - name: The name; nil for one that depends on the fields only.
  /// - Throws: `DocumentIndexError` that names the place in the definition's JSON and the reason.
  public init(_ fields: [String], name: String? = nil) throws(DocumentIndexError) {
    var ascending: [SortField] = []
    for (number, field) in fields.enumerated() {
      guard let path = FieldPath(field) else { throw Self.badPath(field, at: .field(number)) }
      ascending.append(.ascending(path))
    }
    try self.init(ascending, name: name)
  }

  // MARK: Checking

  private static func check(_ fields: [SortField]) throws(DocumentIndexError) {
    let place = JSONPath.member(.root, "fields")
    guard !fields.isEmpty else { throw DocumentIndexError(.noFields, at: place, "an index has at least one field") }
    guard fields.count <= maxFieldCount else {
      throw DocumentIndexError(.tooManyFields, at: place, "an index has up to \(maxFieldCount) fields")
    }
    var paths: Set<FieldPath> = []
    for (number, path) in fields.map(\.path).enumerated() {
      guard path.isWithinLimits else {
        throw DocumentIndexError(
          .badField, at: .field(number),
          "a field's path has up to \(SelectorParser.maxNameCount) names and \(SelectorParser.maxPathByteCount) bytes")
      }
      guard paths.insert(path).inserted else {
        let text = JSONPath.shown(path.description).debugDescription
        throw DocumentIndexError(.badField, at: .field(number), "\(text) is a field of the index already")
      }
    }
  }

  static func badPath(_ text: String, at place: JSONPath) -> DocumentIndexError {
    DocumentIndexError(
      .badField, at: place, "\(JSONPath.shown(text).debugDescription) is not a field's path: a name is empty")
  }

  private static func check(_ name: String) throws(DocumentIndexError) {
    guard isName(name) else {
      throw DocumentIndexError(
        .badName, at: .member(.root, "name"),
        "the name of an index has 1 to \(maxNameByteCount) bytes and no control characters")
    }
  }

  private static func isName(_ name: String) -> Bool {
    (1...maxNameByteCount).contains(name.utf8.count) && !name.unicodeScalars.contains(where: isControl)
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }

  /// Returns a selector that is within all limits; nil for one that matches every document.
  private static func checked(_ selector: Selector) throws(DocumentIndexError) -> Selector? {
    let place = JSONPath.member(.root, "where")
    let tree: SelectorTree
    do throws(SelectorError) {
      tree = try selector.checkedTree()
    } catch {
      throw DocumentIndexError(.badSelector, at: "\(place)\(error.path.dropFirst())", error.reason)
    }
    guard !tree.hasText else {
      throw DocumentIndexError(.badSelector, at: place, "the selector of an index can't have $text")
    }
    return tree.isEverything ? nil : selector
  }

  // MARK: Default names

  /// Returns the paths, joined by commas, with `-` before a descending one, and for a partial index `?` and a hash of
  /// its selector. These characters are escaped in paths, so that another definition has another name. If that is no
  /// name, the default name is its beginning and a hash.
  private static func defaultName(of fields: [SortField], _ selector: Selector?) -> String {
    let paths = fields.map { field in
      (field.direction == .descending ? "-" : "") + escaped(field.path.description)
    }
    var name = paths.joined(separator: ",")
    if let selector { name += "?" + digits(StableHash.of(selector.description.utf8)) }
    guard !isName(name) else { return name }
    let hash = "#" + digits(StableHash.of(name.utf8))
    var start = String.UnicodeScalarView()
    var byteCount = hash.utf8.count
    for scalar in name.unicodeScalars where !isControl(scalar) {
      byteCount += UTF8.width(scalar)
      guard byteCount <= maxNameByteCount else { break }
      start.append(scalar)
    }
    return String(start) + hash
  }

  private static func escaped(_ path: String) -> String {
    var text = path.utf8.first == UInt8(ascii: "-") ? "\\" : ""
    for scalar in path.unicodeScalars {
      if scalar == "," || scalar == "?" { text.unicodeScalars.append("\\") }
      text.unicodeScalars.append(scalar)
    }
    return text
  }

  /// Returns eight hexadecimal digits.
  private static func digits(_ hash: UInt64) -> String {
    let digits = String(UInt32(truncatingIfNeeded: hash ^ hash >> 32), radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}

extension DocumentIndex: Hashable {
  /// Definitions are equal if their names have the same Unicode scalars, and their fields and selectors are equal.
  public static func == (left: DocumentIndex, right: DocumentIndex) -> Bool {
    left.name.hasSameScalars(as: right.name) && left.fields == right.fields && left.selector == right.selector
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(fields) }
}

extension JSONPath {
  /// The place of an index's field in the definition's JSON.
  static func field(_ number: Int) -> JSONPath { .element(.member(.root, "fields"), number) }
}

extension SelectorTree {
  /// Whether the tree of a document's selector searches for words.
  fileprivate var hasText: Bool {
    switch self {
    case .and(let parts), .or(let parts): parts.contains(where: \.hasText)
    case .not(let part): part.hasText
    case .text: true
    case .field, .someElementNot, .expression: false
    }
  }
}
