/// A change of documents: what to set, remove, increase and append. It can be applied to any number of documents.
///
/// In JSON, an update has one of two forms. An object without names that begin with `$` is a **merge patch** (RFC
/// 7396): its members replace those of the document, `null` removes a member, and objects are merged in the same way,
/// at any depth. Arrays are replaced as a whole.
///
/// ```json
/// {"age": 42, "nickname": null, "address": {"city": "Paris"}}
/// ```
///
/// An object of **operators** changes fields by their paths:
///
/// ```json
/// {"$set": {"address.city": "Paris"}, "$unset": ["nickname"], "$inc": {"visits": 1}, "$push": {"tags": "new"}}
/// ```
///
/// | Operator | Operand | Change |
/// |---|---|---|
/// | `$set` | `{PATH: VALUE}` | The field gets the value. |
/// | `$unset` | `[PATH]` or `{PATH: anything}` | The field is removed; an array's element becomes `null`. |
/// | `$inc` | `{PATH: NUMBER}` | The number is added to the field's, by default 0. |
/// | `$push` | `{PATH: VALUE}` | The value is appended to the field's array, by default `[]`. |
/// | `$push` | `{PATH: {"$each": [VALUE]}}` | Several values are appended. |
///
/// `$unset` leaves null in an array so that the other elements keep their indexes.
///
/// An object with both operators and other members is an error. A document's member whose name begins
/// with `$` can't be changed by a merge patch, but by an operator: `{"$set": {"\\$name": 1}}`.
///
/// In Swift, an update is made of literals or of functions:
///
/// ```swift
/// let patch = try DocumentUpdate(["age": 42, "nickname": nil])
/// let update = try DocumentUpdate(changes: [
///   .set("address.city", to: "Paris"), .increment("visits"), .push("new", to: "tags"),
/// ])
/// ```
///
/// ## Paths
///
/// Paths have the syntax of selectors' paths: dots between names, and a backslash to make the next character part of a
/// name. A path goes through objects by name, and through an array by index. The index that is the array's count
/// appends an element, one beyond is an error. Unlike in a selector, a path does not lead into each element of an
/// array: a name that is not an index is an error there. An unescaped `$` at the start of a name is an error, too,
/// because it is an operator in other stores' paths.
///
/// `$set`, `$inc` and `$push` create the objects that are missing on the way (objects only: in `{}`, `a.0` is the
/// member `0` of the object `a`). To go through a string, a number, a Boolean value or `null` is an error. `$unset` of
/// a path that leads nowhere changes nothing.
///
/// The changes of one update don't depend on each other: two changes of the same field, or of a field and a part of it,
/// are an error. `_id` and `_rev` are metadata, which no update changes.
///
/// ## Numbers
///
/// `$inc` adds 64-bit integers exactly; a sum beyond their range is the nearest double. If either number is not an
/// integer, both are added as doubles. A sum beyond the range of doubles is an error.
///
/// ## Limits
///
/// An update has up to 1 MiB of JSON and 10,000 changes (in a merge patch, members at any depth); a path has up to 32
/// names, and no value makes a document more than 512 levels deep.
///
/// ## Equality
///
/// Two updates are equal if they have the same form and the same changes. As in JSON objects, their order doesn't
/// matter; it is the order in which new members are added.
public struct DocumentUpdate: Sendable {
  /// The update as JSON, from which an equal update can be made. Operators are grouped, `$unset` has an object, and
  /// paths are written with the escapes that they need.
  public let json: JSONValue
  private let tree: UpdateTree

  /// Makes an update of its JSON.
  /// - Throws: `DocumentUpdateError` for the first part that is wrong.
  /// - Complexity: O(*n* log *n*) for an update of *n* bytes.
  public init(_ json: JSONValue) throws(DocumentUpdateError) {
    (self.json, tree) = try UpdateParser.parse(json)
  }

  /// Reads an update from JSON text. Members with the same name are an error.
  ///
  /// ```swift
  /// let update = try DocumentUpdate(parsing: #"{"$inc": {"visits": 1}}"#)
  /// ```
  /// - Throws: `DocumentUpdateError` for the first part that is wrong.
  /// - Complexity: O(*n* log *n*) for *n* bytes.
  public init(parsing text: Span<UInt8>) throws(DocumentUpdateError) {
    let json: JSONValue
    do throws(JSONError) {
      json = try JSONValue(parsingInstruction: text, limits: JSONLimits(maxByteCount: UpdateParser.maxByteCount))
    } catch {
      let code: DocumentUpdateError.Code =
        switch error.expected {
        case .lessText: .tooLarge
        case .lessNesting: .tooDeep
        default: .notJSON
        }
      throw DocumentUpdateError(code, at: "$", "the update can't be read: \(error)")
    }
    try self.init(json)
  }

  /// Reads an update from JSON text; see `init(parsing:)` for bytes.
  /// - Throws: `DocumentUpdateError` for the first part that is wrong.
  public init(parsing text: String) throws(DocumentUpdateError) {
    try self.init(parsing: Array(text.utf8).span)
  }

  /// Makes an update of changes. Without any, it is the empty merge patch.
  /// - Throws: `DocumentUpdateError` for the first change that is wrong; its path is that in the update's JSON.
  public init(changes: [Change]) throws(DocumentUpdateError) {
    (json, tree) = try UpdateParser.parse(changes)
  }

  /// Returns a document's text after the update.
  ///
  /// ```swift
  /// let document = Array(#"{"name": "mike", "visits" : 41}"#.utf8)
  /// let update = try DocumentUpdate(changes: [.increment("visits"), .set("pet", to: "cat")])
  /// let changed = try update.apply(to: document.span)
  /// // {"name": "mike", "visits" : 42,"pet":"cat"}
  /// ```
  ///
  /// All text that is not changed is kept byte for byte: the order of members, white space, how numbers are written,
  /// escapes. New members are added to the end of their object, in the update's order. Where several members of an
  /// object have the name of a changed one (or of one that a change is in), the last one is changed, and the others are
  /// removed.
  /// - Parameters:
  ///   - document: The text of a JSON object.
  ///   - limits: How large and how deeply nested the result may be.
  /// - Throws: `DocumentUpdateError` if the text is not a document, if a change is impossible in it, or if the result
  ///   is beyond the limits.
  /// - Complexity: O(*n* + *m*) in one pass over the document, for documents of *n* bytes and updates of *m* bytes; in
  ///   objects of which the update changes *k* members, a name takes O(log *k*) comparisons.
  public func apply(
    to document: Span<UInt8>, limits: JSONLimits = JSONLimits()
  ) throws(DocumentUpdateError) -> [UInt8] {
    let result: [UInt8]
    do throws(UpdateWriter.Failure) {
      result = unsafe try document.withUnsafeBytes { (bytes) throws(UpdateWriter.Failure) in
        var scanner = JSONScanner(unsafe JSONText(bytes), maxDepth: limits.maxDepth)
        return try UpdateWriter.write(tree, to: &scanner, maxDepth: limits.maxDepth)
      }
    } catch {
      switch error {
      case .update(let error): throw error
      case .document: throw Self.documentError(document, limits)
      }
    }
    guard result.count <= limits.maxByteCount else {
      throw DocumentUpdateError(
        .resultTooLarge, at: "$",
        "the document would have \(result.count) bytes, and \(limits.maxByteCount) are allowed")
    }
    return result
  }

  /// Returns a document's text after the update, or nil if that is the same text.
  /// - Throws: As `apply(to:limits:)` does.
  package func change(of document: Span<UInt8>, limits: JSONLimits) throws(DocumentUpdateError) -> [UInt8]? {
    let result = try apply(to: document, limits: limits)
    return result.count == document.count && result.span.order(document) == 0 ? nil : result
  }

  /// Why text isn't a document.
  private static func documentError(_ document: Span<UInt8>, _ limits: JSONLimits) -> DocumentUpdateError {
    do throws(JSONError) {
      try JSON.validate(document, limits: JSONLimits(maxDepth: limits.maxDepth))
      return DocumentUpdateError(.notADocument, at: "$", "the document is not a JSON object")
    } catch {
      return DocumentUpdateError(.notADocument, at: "$", "the document can't be read: \(error)")
    }
  }
}

extension DocumentUpdate: Equatable {
  /// Updates are equal if their JSON is.
  public static func == (left: DocumentUpdate, right: DocumentUpdate) -> Bool { left.json == right.json }
}

extension DocumentUpdate: CustomStringConvertible {
  /// The JSON text on one line.
  public var description: String { json.description }
}

extension DocumentUpdate: Codable {
  /// Decodes an update from its JSON.
  /// - Throws: `DecodingError.dataCorrupted` with a `DocumentUpdateError` if the JSON isn't an update.
  public init(from decoder: any Decoder) throws {
    let json = try JSONValue(from: decoder)
    do throws(DocumentUpdateError) {
      try self.init(json)
    } catch {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: decoder.codingPath, debugDescription: error.description, underlyingError: error))
    }
  }

  /// Encodes the update as its JSON.
  public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}
