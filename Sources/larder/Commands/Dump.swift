import ArgumentParser
import Larder

struct Dump: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints a snapshot of a store, one line of JSON for each entry.",
    discussion: """
      \(EntryLine.help)
      'larder load' reads these lines. Does not block writers.

      Example: larder dump items > items.jsonl
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  func run() async throws {
    var output = Output()
    do {
      for try await entry in try connection.client().store(store.name).all() {
        EntryLine.append(entry, to: &output.bytes)
        try output.flushIfLarge()
      }
    } catch let error as LarderError {
      try output.flush()
      throw error
    }
    try output.flush()
  }
}
