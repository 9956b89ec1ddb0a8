/// A JSON object with the key and the revision of its entry.
///
/// Queries see the key as the member `_id` and the revision as the member `_rev`, in place of members of these names in
/// the text. A document without a key or revision has those members of the text instead, if any.
public struct Document: Sendable {
  static let idName = "_id"
  static let revisionName = "_rev"

  /// What a document has. One object, so that a copy of a document counts one reference.
  private final class Contents: Sendable {
    let id: String?
    let revision: UInt64?
    let text: [UInt8]
    let isProjection: Bool
    /// The key as a JSON string, followed by the revision as a number.
    let metadataText: [UInt8]
    /// Where the key ends in the text of the metadata.
    let idCount: Int

    init(_ text: [UInt8], _ id: String?, _ revision: UInt64?, isProjection: Bool = false) {
      var metadataText: [UInt8] = []
      if let id { JSONString.append(quoting: id, to: &metadataText) }
      idCount = metadataText.count
      if let revision { metadataText += JSONValue(revision: revision).encoded() }
      self.metadataText = metadataText
      self.text = text
      self.id = id
      self.revision = revision
      self.isProjection = isProjection
    }

    init(projection text: [UInt8], of contents: Contents) {
      self.text = text
      id = contents.id
      revision = contents.revision
      metadataText = contents.metadataText
      idCount = contents.idCount
      isProjection = true
    }
  }

  private let contents: Contents

  /// Creates a document from bytes.
  /// - Parameters:
  ///   - text: The text of a JSON object, in UTF-8. It isn't checked: other text matches no query.
  ///   - id: The key, which queries see as `_id`.
  ///   - revision: The revision, which queries see as `_rev`.
  public init(_ text: [UInt8], id: String? = nil, revision: UInt64? = nil) {
    contents = Contents(text, id, revision)
  }

  /// Creates a document from text; see `init(_:id:revision:)` for bytes.
  public init(_ text: String, id: String? = nil, revision: UInt64? = nil) {
    self.init(Array(text.utf8), id: id, revision: revision)
  }

  /// Creates the part of a document that a query asked for.
  /// - Parameter text: The text of a JSON object with the fields of the query.
  package init(projection text: [UInt8], id: String, revision: UInt64) {
    contents = Contents(text, id, revision, isProjection: true)
  }

  private init(_ contents: Contents) { self.contents = contents }

  /// The key of the entry; nil for a document that has no entry.
  public var id: String? { contents.id }
  /// The revision of the entry; nil for a document that has no entry.
  public var revision: UInt64? { contents.revision }
  /// The text of the object as stored, in UTF-8, without key and revision.
  public var text: [UInt8] { contents.text }
  /// A Boolean value that indicates whether the text has only the fields that a query asked for.
  public var isProjection: Bool { contents.isProjection }

  /// Returns the object as a tree: with `_id` and `_rev`, unless it is a projection, which has them if they were asked
  /// for.
  /// - Throws: `JSONError` if the text isn't a JSON object.
  public func value() throws(JSONError) -> JSONValue {
    let text = try json()
    return try JSONValue(parsing: text.span)
  }

  /// Returns the text of the object: with `_id` and `_rev` at the start, unless it is a projection, which has them if
  /// they were asked for.
  /// - Throws: `JSONError` if the text isn't a JSON object.
  /// - Complexity: O(*n*) in the size of the text.
  public func json() throws(JSONError) -> [UInt8] {
    let metadata = isProjection ? [] : self.metadata
    guard !metadata.isEmpty else {
      _ = try JSON.scan(text.span, JSONLimits()) { (scanner) throws(JSONScanner.Failure) in try scanner.skipObject() }
      return text
    }
    return try JSON.scan(text.span, JSONLimits()) { (scanner) throws(JSONScanner.Failure) in
      let value = try scanner.skipObject()
      var output = [UInt8(ascii: "{")]
      func append(_ name: [UInt8], _ value: some Sequence<UInt8>) {
        if output.count > 1 { output.append(UInt8(ascii: ",")) }
        output += name
        output.append(UInt8(ascii: ":"))
        output += value
      }
      for (name, value) in metadata { append(Array("\"\(name)\"".utf8), value) }
      value.forEachMember { name, member in
        let isShadowed = metadata.contains { entry in name.withText { $0.order(Array(entry.name.utf8).span) == 0 } }
        if !isShadowed { unsafe append(Array(name.bytes), member.bytes) }
      }
      output.append(UInt8(ascii: "}"))
      return output
    }
  }

  /// The members that stand for key and revision, as JSON.
  private var metadata: [(name: String, value: [UInt8])] {
    var members: [(name: String, value: [UInt8])] = []
    let (text, idCount) = (contents.metadataText, contents.idCount)
    if idCount > 0 { members.append((Self.idName, Array(text[..<idCount]))) }
    if idCount < text.count { members.append((Self.revisionName, Array(text[idCount...]))) }
    return members
  }

  /// Returns the part of the document that a query asked for.
  func projected(_ projection: Projection) -> Document {
    Document(Contents(projection: withSource(projection.object), of: contents))
  }

  /// Calls `body` with the places of the text and the metadata.
  @inline(__always)
  func withSource<Result>(_ body: (DocumentSource) -> Result) -> Result {
    unsafe contents.text.withUnsafeBufferPointer { text in
      unsafe contents.metadataText.withUnsafeBufferPointer { metadata in
        unsafe body(DocumentSource(text, metadata: metadata, idCount: contents.idCount, isTrusted: false))
      }
    }
  }
}

extension JSONValue {
  /// A revision as a number.
  init(revision: UInt64) { self = Int64(exactly: revision).map(JSONValue.integer) ?? .double(Double(revision)) }
}

extension JSONScanner {
  /// Passes an object, after white space.
  fileprivate mutating func skipObject() throws(Failure) -> SourceValue {
    guard peek() == UInt8(ascii: "{") else { throw failure(.object) }
    return SourceValue(try skipValue(), of: text)
  }
}
