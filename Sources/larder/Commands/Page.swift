import ArgumentParser
import Larder

struct Page: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints a range of entries in key order.",
    discussion: """
      \(EntryLine.helpWithTable)
      With --keys-only, values are omitted. To read a store page by page, pass the last key of a page to --after.

      Example: larder page items --prefix a --limit 10
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Option(parsing: .unconditional, help: "The number of entries to skip. Large offsets are as fast as small ones.")
  private var offset: UInt64 = 0

  @Option(parsing: .unconditional, help: "The maximum number of entries to print.")
  private var limit: UInt32 = 100

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Print only keys after this one, or before it with --reverse. The key need not exist.", valueName: "key"))
  private var after: String?

  @Option(parsing: .unconditional, help: "Print only keys with this prefix.")
  private var prefix = ""

  @Flag(help: "Print in descending key order.")
  private var reverse = false

  @Flag(help: "Omit values.")
  private var keysOnly = false

  func run() async throws {
    let entries = try await connection.client().store(store.name)
      .page(offset: offset, limit: Int(limit), prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
    var output = Output()
    if Output.showsTables {
      var table = EntryTable(keysOnly: keysOnly)
      for entry in entries { table.add(entry) }
      return try output.writeLine(entries.isEmpty ? "No entries match." : table.text)
    }
    for entry in entries {
      EntryLine.append(entry, keysOnly: keysOnly, to: &output.bytes)
      try output.flushIfLarge()
    }
    try output.flush()
  }
}
