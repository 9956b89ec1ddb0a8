import ArgumentParser
import Larder

struct Count: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the number of entries in a store.",
    discussion: """
      Counting with a prefix takes no longer than without. With a range or pattern, the server sends the keys to larder.

      Example: larder count items
      Example: larder count items --prefix user:
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument
  @OptionGroup private var range: KeyRangeOptions

  func run() async throws {
    let count = try await range.count(in: connection.client().store(store.name))
    var output = Output()
    try output.writeLine(String(count))
  }
}
