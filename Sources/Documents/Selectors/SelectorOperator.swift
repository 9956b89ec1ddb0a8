/// The operators of selectors, by their names in JSON.
package enum SelectorOperator: String, CaseIterable {
  case equal = "$eq"
  case notEqual = "$ne"
  case less = "$lt"
  case lessOrEqual = "$lte"
  case greater = "$gt"
  case greaterOrEqual = "$gte"
  case `in` = "$in"
  case notIn = "$nin"
  case exists = "$exists"
  case type = "$type"
  case size = "$size"
  case remainder = "$mod"
  case regex = "$regex"
  case beginsWith = "$beginsWith"
  case endsWith = "$endsWith"
  case contains = "$contains"
  case like = "$like"
  case all = "$all"
  case elemMatch = "$elemMatch"
  case allMatch = "$allMatch"
  case keyMapMatch = "$keyMapMatch"
  case and = "$and"
  case or = "$or"
  case nor = "$nor"
  case not = "$not"
  case text = "$text"
  case expression = "$expr"
  /// Not a condition: it says what the string operators beside it ignore.
  case options = "$options"

  /// A Boolean value that indicates whether `$options` applies to the operator.
  var takesOptions: Bool {
    switch self {
    case .equal, .notEqual, .in, .notIn, .regex, .beginsWith, .endsWith, .contains, .like: true
    default: false
    }
  }
}
