import Basics

/// An option that the specification of a store can have, as in `log?durability=none`.
package struct EngineOption: Sendable {
  /// A value and what it means, for help and completions.
  package struct Example: Sendable {
    package let value: String
    /// A phrase that begins with a lowercase letter.
    package let help: String

    package init(_ value: String, _ help: String) { (self.value, self.help) = (value, help) }
  }

  package let name: String
  /// What the option states, in one line of help that begins with a lowercase letter.
  package let summary: String
  /// The valid values, as they follow "use" in an error.
  private let validValues: String
  /// The value of stores whose specification doesn't have the option; nil if these don't have it either.
  package let defaultValue: String?
  package let examples: [Example]
  /// Returns a valid value as its type writes it; nil for an invalid one.
  private let canonicalValue: @Sendable (String) -> String?

  /// - Parameters:
  ///   - type: The type of the value.
  ///   - validValues: The valid values, as they follow "use" in an error.
  ///   - defaultValue: The value of stores whose specification doesn't have the option; nil for none.
  package init<Value: LosslessStringConvertible & SendableMetatype>(
    _ name: String, _ type: Value.Type, summary: String, validValues: String, default defaultValue: Value? = nil,
    examples: [Example]
  ) {
    precondition(!StoreDescription.reservedFields.contains(name), "a store's description has another field \(name)")
    self.name = name
    self.summary = summary
    self.validValues = validValues
    self.defaultValue = defaultValue?.description
    self.examples = examples
    canonicalValue = { Value($0)?.description }
  }

  /// Returns a value as its type writes it.
  /// - Throws: `StorageError.invalidOption`, also for a control character, because a value is a line in the description of
  ///   a store.
  func canonical(_ text: String) throws(StorageError) -> String {
    let isPlain = text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    guard isPlain, let value = canonicalValue(text) else {
      throw .invalidOption("\"\(text)\" is not a valid \(name); use \(validValues)")
    }
    return value
  }

  /// The syntax of the option, such as `limit=256MiB`.
  package var usage: String { "\(name)=\(examples.map(\.value).joined(separator: "|"))" }
}

extension EngineOption {
  package static let durability = EngineOption(
    "durability", Durability.self, summary: "when a write is on disk",
    validValues: "always, none, or interval: with a time of up to 1 hour, such as 1s", default: .always,
    examples: [
      Example("always", "before the server replies (default)"),
      Example("interval:1s", "at most this much later: 1ms to 3600s"),
      Example("none", "when the operating system writes it"),
    ])

  package static let database = EngineOption(
    "database", DatabaseName.self, summary: "the database with the store's log, by its name in the server's settings",
    validValues: "the name of a database in the server's settings", default: DatabaseName("main"),
    examples: [Example("main", "the database of that name (default)")])

  static let limit = EngineOption(
    "limit", MemoryLimit.self,
    summary: "the memory of the entries, above which the least recently used ones are evicted (approximately)",
    validValues: "a whole number of KiB, MiB or GiB from 1MiB to 1024GiB, such as 256MiB",
    examples: [Example("256MiB", "a whole number of KiB, MiB or GiB")])
}
