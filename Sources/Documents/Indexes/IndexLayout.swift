/// How the entries of an index are ordered: by the bytes of their keys, then by the `_id` of their documents, ascending.
///
/// A key is the order keys of all fields, one after the other; that of a descending field is complemented bytewise. So
/// that reading backwards serves an index whose last field is descending, with ties in the right direction, its fields
/// are laid out in the opposite directions.
package struct IndexLayout: Sendable {
  /// A field as it is laid out.
  package struct Field: Equatable, Sendable {
    package let path: FieldPath
    package let isDescending: Bool
  }

  /// The fields. The last one is ascending.
  package let fields: [Field]
  /// Whether reading forwards gives the reverse of the definition's order.
  package let isReversed: Bool

  package init(_ index: DocumentIndex) {
    let isReversed = index.fields.last?.direction == .descending
    fields = index.fields.map { field in
      Field(path: field.path, isDescending: (field.direction == .descending) != isReversed)
    }
    self.isReversed = isReversed
  }

  /// Appends an order key, or the beginning of one, as the field of a number.
  package func append(_ orderKey: [UInt8], asField field: Int, to key: inout [UInt8]) {
    let start = key.count
    key += orderKey
    if fields[field].isDescending { OrderKey.complement(&key, from: start) }
  }

  /// Returns the size, in bytes, of the first fields of a key that isn't the overflow key.
  package func size(ofFields count: Int, in key: Span<UInt8>) -> Int {
    var size = 0
    for field in fields.prefix(count) {
      let mask: UInt8 = field.isDescending ? 0xFF : 0
      guard let fieldSize = OrderKey.count(ofFirstIn: key.extracting(size...), mask: mask) else {
        preconditionFailure("a key of an index lacks a field")
      }
      size += fieldSize
    }
    return size
  }
}

/// Functions on ranges of an index's keys.
package enum IndexRange {
  /// The key of documents whose keys are too many or too long. It precedes all other keys.
  package static let overflowKey: [UInt8] = [0]

  /// Returns the first byte string that follows all those that begin with a prefix; nil if there is none.
  package static func successor(of prefix: [UInt8]) -> [UInt8]? {
    guard let last = prefix.lastIndex(where: { $0 < 0xFF }) else { return nil }
    return prefix[..<last] + [prefix[last] + 1]
  }
}
