import ArgumentParser
import Larder

struct Delete: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Deletes entries atomically.",
    discussion: """
      Prints the number of deleted entries. Ignores keys without an entry.

      Example: larder delete items apple pear
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "The entries' keys.", transform: KeyLength.validate)
  private var keys: [String]

  func run() async throws {
    let count = try await connection.client().store(store.name).deleteMany(keys)
    var output = Output()
    try output.writeLine(String(count))
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
