import ArgumentParser
import Larder

struct Delete: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Deletes entries, all in one step.",
    discussion: """
      Prints how many there were. Keys that have no entry are passed over.

      Example: larder delete items apple pear
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  @Argument(help: "The entries' keys.", transform: KeyRule.check)
  var keys: [String]

  func run() async throws {
    let count = try await connection.client().store(store.name).deleteMany(keys)
    var output = Output()
    try output.writeLine(String(count))
  }
}

struct Count: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints how many entries a store has.",
    discussion: "Example: larder count items")

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  func run() async throws {
    let count = try await connection.client().store(store.name).count()
    var output = Output()
    try output.writeLine(String(count))
  }
}
