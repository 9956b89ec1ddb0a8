import DataSources

/// A field of an entity, named as its JSON names it; without a name, the entity itself. Fields inside of fields are written with dots.
@dynamicMemberLookup
public struct EntityField: Hashable, Sendable {
  let path: [String]

  init(_ path: [String]) {
    self.path = path
  }

  /// - Throws: `DataSourceError.illegalArgument` for a name that SQLite has no way to write.
  init(path text: String) throws {
    path = text == "SELF" ? [] : text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    try check()
  }

  /// The field of that name in this one.
  public subscript(dynamicMember name: String) -> EntityField { EntityField(path + [name]) }

  /// The field of a name that isn't one in Swift.
  public subscript(name: String) -> EntityField { EntityField(path + [name]) }

  func check() throws {
    guard path.allSatisfy({ !$0.isEmpty && !$0.contains("\"") && !$0.contains("\0") }) else {
      throw DataSourceError(.illegalArgument, "\(path.joined(separator: ".").debugDescription) is no field")
    }
  }

  /// The field's value in SQL, written always in the same way, or no index is used. Its name has been checked.
  func sql() -> String {
    let path = path.map { ".\"\($0)\"" }.joined().replacing("'", with: "''")
    return "json_extract(value, '$\(path)')"
  }
}
