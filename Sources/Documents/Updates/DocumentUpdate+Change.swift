extension DocumentUpdate {
  /// A change of one field, for updates that are made in Swift.
  ///
  /// The field's path is written as in a selector: names are joined by dots, and a backslash makes the next character
  /// part of a name. Paths are checked when an update is made of the changes.
  public struct Change: Equatable, Sendable {
    enum Action: Equatable, Sendable {
      case set(JSONValue)
      case unset
      case increment(JSONValue)
      case push([JSONValue])
    }

    let path: String
    let action: Action

    /// Gives the field a value: `$set`.
    public static func set(_ path: String, to value: JSONValue) -> Change { Change(path: path, action: .set(value)) }

    /// Removes the field, or replaces an element of an array by null: `$unset`.
    public static func unset(_ path: String) -> Change { Change(path: path, action: .unset) }

    /// Adds a number to the field's: `$inc`.
    public static func increment(_ path: String, by amount: JSONValue = 1) -> Change {
      Change(path: path, action: .increment(amount))
    }

    /// Appends a value to the field's array: `$push`.
    public static func push(_ value: JSONValue, to path: String) -> Change {
      Change(path: path, action: .push([value]))
    }

    /// Appends values to the field's array: `$push` with `$each`.
    public static func push(each values: [JSONValue], to path: String) -> Change {
      Change(path: path, action: .push(values))
    }
  }
}

extension DocumentUpdate.Change.Action {
  /// The operator's name in JSON.
  var name: String {
    switch self {
    case .set: "$set"
    case .unset: "$unset"
    case .increment: "$inc"
    case .push: "$push"
    }
  }

  /// The operand in JSON, which reads back as the same action.
  var operand: JSONValue {
    switch self {
    case .set(let value), .increment(let value): value
    case .unset: true
    case .push(let values): isPlainPush ? values[0] : ["$each": .array(values)]
    }
  }

  /// A Boolean value that indicates whether the operand is the one value to append, without `$each` around it.
  private var isPlainPush: Bool {
    guard case .push(let values) = self, values.count == 1 else { return false }
    guard case .object(let members) = values[0] else { return true }
    return !members.contains { $0.name.utf8.first == UInt8(ascii: "$") }
  }

  /// How many objects and arrays the action's values are in, in the update's JSON.
  var operandDepth: Int {
    guard case .push = self, !isPlainPush else { return 2 }
    return 4
  }
}
