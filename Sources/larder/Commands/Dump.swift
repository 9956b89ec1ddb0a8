import ArgumentParser
import Larder

struct Dump: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints a snapshot of a store, one line of JSON for each entry.",
    discussion: """
      \(EntryLine.help)
      'larder load' reads these lines. Does not block writers. With --format csv, the first line is \
      \(EntryOutput.csvHeader(keysOnly: false)).

      Example: larder dump items > items.jsonl
      Example: larder dump items --prefix user: --format csv > users.csv
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument
  @OptionGroup private var range: KeyRangeOptions
  @OptionGroup var outputOptions: OutputOptions

  func run() async throws {
    let store = try connection.client().store(store.name)
    var output = EntryOutput(format: outputOptions.format ?? .json)
    do {
      try await range.forEachEntry(of: store) { entry in
        try output.add(entry)
        return true
      }
    } catch let error as LarderError {
      try output.finish()
      throw error
    }
    try output.finish()
  }
}
