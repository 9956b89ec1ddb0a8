import ArgumentParser
import Larder

struct Page: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints some entries in the order of their keys.",
    discussion: """
      \(EntryLine.helpWithTable)
      With --keys-only there is no value. To go through a store page by page, give the last key of a page to --after.

      Example: larder page items --prefix a --limit 10
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  @Option(help: "How many entries to pass over first. Deep offsets cost no more than small ones.")
  var offset: UInt64 = 0

  @Option(help: "How many entries to print at most.")
  var limit: UInt32 = 100

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Only keys behind this one, which need not be there; before it with --reverse.", valueName: "key"))
  var after: String?

  @Option(parsing: .unconditional, help: "Only keys that begin with this.")
  var prefix = ""

  @Flag(help: "From the greatest key to the smallest.")
  var reverse = false

  @Flag(help: "Leave the values out.")
  var keysOnly = false

  func run() async throws {
    let entries = try await connection.client().store(store.name)
      .page(offset: offset, limit: Int(limit), prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
    var output = Output()
    if Output.showsTables {
      var table = EntryTable(keysOnly: keysOnly)
      for entry in entries { table.add(entry) }
      return try output.writeLine(entries.isEmpty ? "There are no such entries." : table.text)
    }
    for entry in entries {
      EntryLine.append(entry, keysOnly: keysOnly, to: &output.bytes)
      try output.flushIfLarge()
    }
    try output.flush()
  }
}
