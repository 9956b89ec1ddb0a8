/// The order of a query's result: which fields it is sorted by, as numbers of paths in a trie.
struct SortOrder: Sendable {
  private struct Field {
    let path: Int
    let isDescending: Bool
  }

  private let fields: [Field]

  /// The paths of an order without fields: that of `_id`.
  static let tiePaths: PathTable.Storage = {
    var paths = PathTrie()
    _ = SortOrder([], &paths)
    return PathTable.storage(of: paths)
  }()

  /// Adds the paths of the fields to a trie. Ties are broken by `_id`, in the direction of the last field.
  init(_ sort: [SortField], _ paths: inout PathTrie) {
    let tie = SortField(FieldPath(names: [Document.idName]), sort.last?.direction ?? .ascending)
    fields = (sort + [tie]).map { Field(path: paths.add($0.path), isDescending: $0.direction == .descending) }
  }

  /// Makes the key by which a document is sorted: bytes that are compared as unsigned numbers.
  /// - Parameters:
  ///   - end: A key that the result must precede; nil if there is none.
  ///   - budget: Once it is exhausted, the key means nothing.
  /// - Returns: Whether the key precedes the end. If not, the key may lack fields.
  func makeKey(
    of values: borrowing FieldValues, before end: [UInt8]?, in key: inout [UInt8], _ budget: inout WorkBudget
  ) -> Bool {
    key.removeAll(keepingCapacity: true)
    for field in fields {
      append(field, of: values, to: &key, &budget)
      // The first fields decide, because no field's key is the beginning of another's.
      if let end, key.span.order(end.span.extracting(first: key.count)) > 0 { return false }
    }
    guard let end else { return true }
    return key.span.order(end.span) < 0
  }

  /// Appends the key of a field's least element, or of its greatest if the field is descending.
  private func append(
    _ field: Field, of values: borrowing FieldValues, to key: inout [UInt8], _ budget: inout WorkBudget
  ) {
    let start = key.count
    values.forEachElement(of: field.path, &budget) { element, _ in
      let next = key.count
      OrderKey.append(element, to: &key)
      guard next > start else { return }
      let order = key.span.extracting(next..<key.count).order(key.span.extracting(start..<next))
      if (order < 0) != field.isDescending, order != 0 {
        key.removeSubrange(start..<next)
      } else {
        key.removeSubrange(next...)
      }
    }
    if key.count == start { OrderKey.appendMissing(to: &key) }
    if field.isDescending { for index in start..<key.count { key[index] = ~key[index] } }
  }
}
