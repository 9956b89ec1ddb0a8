/// Why JSON isn't an update, or why an update can't be applied to a document, and which part of the update it is about.
public struct DocumentUpdateError: Error, Equatable, Sendable {
  /// What is wrong, for programs. The raw values are stable: they are part of protocols and of other programs' code.
  public enum Code: String, CaseIterable, Sendable {
    // Of the update itself.

    /// The update is not JSON.
    case notJSON
    /// The update is not a JSON object.
    case notAnObject
    /// The update has operators and other members.
    case mixedForms
    /// There is no such operator.
    case unknownOperator
    /// An operator has an operand that it doesn't take.
    case badOperand
    /// A path has an empty name, an unescaped `$` at the start of a name, or too many names.
    case badPath
    /// The update changes `_id` or `_rev`.
    case metadata
    /// Two changes are to the same field, or one is to a part of the other's.
    case conflict
    /// The update's text is too long, or it has too many changes.
    case tooLarge
    /// A value is nested too deeply.
    case tooDeep

    // Of an update and a document.

    /// The document is not a JSON object.
    case notADocument
    /// A path leads through a value that is neither an object nor an array.
    case notAContainer
    /// A path leads through an array by a name that is not an index.
    case notAnIndex
    /// An index is beyond the end of its array.
    case indexTooLarge
    /// `$inc` finds a value that is not a number.
    case notANumber
    /// `$push` finds a value that is not an array.
    case notAnArray
    /// The result of `$inc` is beyond the range of doubles.
    case numberTooLarge
    /// The result would have more bytes than the limit.
    case resultTooLarge
    /// The result would be nested more deeply than the limit.
    case resultTooDeep
  }

  /// What is wrong, for programs.
  public let code: Code
  /// The place, as a JSON path in the update: `$` is the whole, `$.$set.address.city` a change.
  public let path: String
  /// What is wrong and what is expected, for people.
  public let reason: String

  /// Creates an error.
  /// - Parameter path: The place, as a JSON path in the update.
  public init(_ code: Code, at path: String, _ reason: String) {
    self.code = code
    self.path = path
    self.reason = reason
  }
}

extension DocumentUpdateError: CustomStringConvertible {
  /// The reason and the place: "a can't be incremented: a is a string (at $.$inc.a)".
  public var description: String { "\(reason) (at \(path))" }
}
