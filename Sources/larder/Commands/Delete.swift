import ArgumentParser
import Larder

struct Delete: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Deletes entries.",
    discussion: """
      Deletes the entries of the KEYS atomically, and ignores keys without an entry. Keys from a file are deleted in \
      steps of up to 10,000. With --where instead of KEYS, deletes the \
      documents that match a selector, up to 65,536 of them. Prints the number of deleted entries.

      Example: larder delete items apple pear
      Example: larder delete people --where '{"age":{"$lt":12}}' --dry-run
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @OptionGroup private var keys: KeysArguments

  @Option(
    name: .customLong("where"), parsing: .unconditional,
    help: ArgumentHelp("Delete the documents that match this selector, as in 'larder find'.", valueName: "selector"))
  private var selector: String?

  @Flag(help: "Only print the number of documents that --where would delete.")
  private var dryRun = false

  func validate() throws {
    guard selector == nil || keys.isEmpty else { throw ValidationError("keys and --where can't be combined") }
    if selector == nil { try keys.requireKeys(or: ", or --where") }
    guard selector != nil || !dryRun else { throw ValidationError("--dry-run requires --where") }
  }

  func run() async throws {
    let selector = try selector.map(DocumentArguments(for: "delete").selector)
    let store = try connection.client().store(store.name)
    var output = Output()
    if let selector {
      let changes = try await store.delete(where: selector, dryRun: dryRun)
      try output.writeLine(changes.text(verb: dryRun ? "would delete" : "deleted"))
    } else {
      var count: UInt64 = 0
      for keys in try await keys.requests() { count += try await store.deleteMany(keys) }
      try output.writeLine(String(count))
    }
  }
}

struct Count: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the number of entries in a store.",
    discussion: "Example: larder count items")

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  func run() async throws {
    let count = try await connection.client().store(store.name).count()
    var output = Output()
    try output.writeLine(String(count))
  }
}
