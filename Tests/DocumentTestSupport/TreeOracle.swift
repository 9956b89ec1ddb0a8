import Documents

/// The order and the fields of documents, computed on trees in the plainest way.
package enum TreeOracle {
  /// The values that a path leads to, through objects, array indexes and the objects in arrays.
  package static func values(_ value: JSONValue, _ names: ArraySlice<String>) -> [JSONValue] {
    guard let name = names.first else { return [value] }
    switch value {
    case .object(let members): return members[name].map { values($0, names.dropFirst()) } ?? []
    case .array(let elements):
      if isIndex(name) {
        guard let index = Int(name), index < elements.count else { return [] }
        return values(elements[index], names.dropFirst())
      }
      return elements.flatMap { element -> [JSONValue] in
        guard case .object = element else { return [] }
        return values(element, names)
      }
    default: return []
    }
  }

  private static func isIndex(_ name: String) -> Bool {
    name.utf8.allSatisfy { (0x30...0x39).contains($0) } && (name == "0" || !name.hasPrefix("0"))
  }

  /// The value by which a document is sorted; nil if it has none, which comes before all others.
  private static func sortValue(_ document: JSONValue, _ field: SortField) -> JSONValue? {
    let elements = values(document, field.path.names[...]).flatMap { value -> [JSONValue] in
      if case .array(let elements) = value { elements } else { [value] }
    }
    return field.direction == .ascending ? elements.min() : elements.max()
  }

  private static func precedes(_ left: JSONValue, _ right: JSONValue, _ sort: [SortField]) -> Bool {
    let tie = SortField("_id", sort.last?.direction ?? .ascending)
    for field in sort + [tie] {
      let isDescending = field.direction == .descending
      switch (sortValue(left, field), sortValue(right, field)) {
      case (nil, nil): continue
      case (nil, _): return !isDescending
      case (_, nil): return isDescending
      case (let left?, let right?):
        if left == right { continue }
        return (left < right) != isDescending
      }
    }
    return false
  }

  package static func sorted(_ documents: [JSONValue], _ sort: [SortField]) -> [JSONValue] {
    documents.sorted { precedes($0, $1, sort) }
  }

  /// The part of a document that fields lead to, by names and indexes only.
  package static func projection(_ document: JSONValue, _ fields: [FieldPath]) -> JSONValue {
    var result = JSONValue.object([:])
    for field in fields.sorted(by: { $0.names.count > $1.names.count }) {
      var value: JSONValue? = document
      for name in field.names {
        if case .array(let elements)? = value {
          let index = isIndex(name) ? Int(name) : nil
          value = index.flatMap { elements.indices.contains($0) ? .some(elements[$0]) : Optional<JSONValue>.none }
        } else {
          value = value?[name]
        }
      }
      if let value { result = setting(field.names[...], of: result, to: value) }
    }
    return result
  }

  private static func setting(_ names: ArraySlice<String>, of tree: JSONValue, to value: JSONValue) -> JSONValue {
    guard let name = names.first else { return value }
    guard case .object(var members) = tree else { return tree }
    members[name] = setting(names.dropFirst(), of: members[name] ?? .object([:]), to: value)
    return .object(members)
  }
}
