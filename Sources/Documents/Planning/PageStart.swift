/// The end of the last page, by the values that the page's last document has: what an ordered plan starts behind.
struct PageStart: Sendable {
  /// The order keys of the sort's fields and of `_id`, by the numbers of their paths.
  private var keys: [Int: [UInt8]] = [:]

  /// - Parameter sortKey: A bookmark's key.
  /// - Returns: nil if the key isn't one of the order.
  init?(_ sortKey: [UInt8], _ order: RequestedOrder) {
    let tie = RequestedOrder.Field(path: PathNumbers.id, isDescending: order.isTieDescending)
    var position = 0
    for field in order.fields + [tie] {
      var rest = Array(sortKey[position...])
      if field.isDescending { OrderKey.complement(&rest) }
      guard let count = OrderKey.count(ofFirstIn: rest.span) else { return nil }
      if let path = field.path, keys[path] == nil { keys[path] = Array(rest.prefix(count)) }
      position += count
    }
    guard position == sortKey.count else { return nil }
  }

  /// The order key of a path's value; nil if the sort doesn't have the path.
  subscript(path: Int) -> [UInt8]? { keys[path] }

  /// The id of the last document; nil if the key isn't that of a string.
  var id: [UInt8]? { keys[PathNumbers.id].flatMap { OrderKey.text(of: $0) } }
}

extension KeyRange {
  /// Returns the part of ranges from a bound on, or up to it.
  static func part(of ranges: [KeyRange], upTo isUpper: Bool, _ bound: [UInt8]) -> [KeyRange] {
    ranges.compactMap { range in
      let startsBefore = range.lower.span.order(bound.span) < 0
      let endsAfter = range.upper.map { bound.span.order($0.span) < 0 } ?? true
      if isUpper {
        guard startsBefore else { return nil }
        return endsAfter ? KeyRange(lower: range.lower, upper: bound) : range
      }
      guard endsAfter else { return nil }
      return startsBefore ? KeyRange(lower: bound, upper: range.upper) : range
    }
  }
}
