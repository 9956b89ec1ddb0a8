import ArgumentParser
import Larder

struct Dump: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints all entries of a store as they are at one moment, one line of JSON each.",
    discussion: """
      \(EntryLine.help)
      'larder load' reads these lines. Writers are not held up meanwhile.

      Example: larder dump items > items.jsonl
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

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
