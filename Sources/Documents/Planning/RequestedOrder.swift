/// The order of a query's result, with paths as numbers.
struct RequestedOrder: Sendable {
  struct Field: Sendable {
    /// The number of the path; nil for a path that no index has.
    let path: Int?
    let isDescending: Bool
  }

  let fields: [Field]
  /// Whether documents that are equal in all fields are in descending order of their ids.
  let isTieDescending: Bool

  init(_ sort: [SortField], _ paths: PathNumbers) {
    fields = sort.map { Field(path: paths[$0.path], isDescending: $0.direction == .descending) }
    isTieDescending = sort.last?.direction == .descending
  }

  /// Returns whether documents that come in the order of some fields, then of their ids, come in this order if they are
  /// read backwards (true) or forwards (false); nil if they don't.
  /// - Parameters:
  ///   - order: The fields in their order.
  ///   - fixed: The paths that have the same single value in all documents.
  func isReverse(of order: [Field], isTieDescending: Bool = false, fixed: [Int] = []) -> Bool? {
    var (isReversed, position, seen) = (Bool?.none, 0, [Int]())
    /// Returns whether a field's directions agree with those of the fields before.
    func agrees(_ wanted: Bool, _ given: Bool) -> Bool {
      defer { isReversed = wanted != given }
      return isReversed == nil || isReversed == (wanted != given)
    }
    var wantedTie = self.isTieDescending
    for field in fields {
      // Ids are all different, so that nothing behind them matters.
      if field.path == PathNumbers.id {
        wantedTie = field.isDescending
        break
      }
      if let path = field.path, fixed.contains(path) || seen.contains(path) { continue }
      guard position < order.count, let path = field.path, order[position].path == path,
        agrees(field.isDescending, order[position].isDescending)
      else { return nil }
      seen.append(path)
      position += 1
    }
    guard position == order.count, agrees(wantedTie, isTieDescending) else { return nil }
    return isReversed
  }
}
