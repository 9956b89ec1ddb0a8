extension Selector {
  /// An operand of `$expr`: one or more candidate values computed of a document.
  public indirect enum Expression: Equatable, Sendable {
    public enum Comparison: String, Sendable {
      case equal = "$eq"
      case less = "$lt"
      case lessOrEqual = "$lte"
      case greater = "$gt"
      case greaterOrEqual = "$gte"
    }

    public enum Operation: String, CaseIterable, Sendable {
      case add = "$add"
      case subtract = "$subtract"
      case multiply = "$multiply"
      case divide = "$divide"
    }

    public enum Aggregate: String, CaseIterable, Sendable {
      case count = "$count"
      case sum = "$sum"
      case average = "$avg"
      case min = "$min"
      case max = "$max"
    }

    case literal(JSONValue)
    case field(FieldPath)
    case operation(Operation, Expression, Expression)
    case aggregate(Aggregate, FieldPath)
    /// How many elements match.
    case countWhere(FieldPath, Selector)
  }
}
