/// The definition of an index: a name, and the fields whose values are in the index, in order.
public struct DocumentIndex: Hashable, Sendable {
  /// The name, which is unique in its collection.
  public let name: String
  /// The paths of the fields. There is at least one, and none occurs twice.
  public let fields: [FieldPath]

  /// - Parameter name: The name; nil for one that depends on the fields only.
  init(_ fields: [String], name: String?) throws(DocumentIndexError) {
    guard !fields.isEmpty else { throw DocumentIndexError(.noFields, "an index has at least one field") }
    var paths: [FieldPath] = []
    for field in fields {
      guard let path = FieldPath(field) else {
        throw DocumentIndexError(.badField, "\(field.debugDescription) is no field's path: a name is empty")
      }
      guard !paths.contains(path) else {
        throw DocumentIndexError(.badField, "\(field.debugDescription) is a field of the index already")
      }
      paths.append(path)
    }
    guard name != "" else { throw DocumentIndexError(.badName, "the name of an index is not empty") }
    self.name = name ?? Self.name(of: paths)
    self.fields = paths
  }

  /// Returns the paths, joined by commas. Commas in paths are escaped, so that other paths have another name.
  private static func name(of paths: [FieldPath]) -> String {
    paths.map { path in
      path.description.unicodeScalars.map { $0 == "," ? "\\," : String($0) }.joined()
    }.joined(separator: ",")
  }
}

/// The indexes of a collection.
struct DocumentIndexes {
  private var indexes: [String: DocumentIndex] = [:]

  /// Adds an index, unless it exists.
  mutating func ensure(_ index: DocumentIndex) throws(DocumentIndexError) {
    guard let existing = indexes[index.name], existing.fields != index.fields else {
      indexes[index.name] = index
      return
    }
    let fields = existing.fields.map(\.description).joined(separator: ", ")
    throw DocumentIndexError(.otherDefinition, "the index \(index.name) exists, with the fields \(fields)")
  }

  /// Returns whether there was an index of the name.
  mutating func delete(_ name: String) -> Bool { indexes.removeValue(forKey: name) != nil }

  var sorted: [DocumentIndex] { indexes.values.sorted { $0.name < $1.name } }
}

/// The reason why an index is not accepted.
public struct DocumentIndexError: Error, Equatable, Sendable {
  /// What is wrong, for programs. The raw values are stable.
  public enum Code: String, CaseIterable, Sendable {
    /// The index has no fields.
    case noFields
    /// The path of a field has an empty name, or a field occurs twice.
    case badField
    /// The name is empty.
    case badName
    /// An index of that name has other fields. Delete it first.
    case otherDefinition
  }

  /// What is wrong, for programs.
  public let code: Code
  /// What is wrong, for people.
  public let reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }
}

extension DocumentIndexError: CustomStringConvertible {
  /// The reason.
  public var description: String { reason }
}
