import ArgumentParser
import Glibc
import Larder
import Platform

struct Page: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints a range of entries in key order.",
    discussion: """
      \(EntryLine.helpWithTable)
      With --keys-only, values are omitted. To read a store page by page, pass the last key of a page to --after. On a \
      terminal, standard error shows the command for the next page, if there is one.

      Example: larder page items --prefix a --limit 10
      Example: larder page items --from 2026-01 --to 2026-02 --match '*:paid'
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Option(
    parsing: .unconditional,
    help: "The number of entries to skip. Large offsets are as fast as small ones. (default: 0)",
    transform: WholeNumber.parse)
  private var offset: UInt64 = 0

  @Option(
    parsing: .unconditional, help: "The maximum number of entries to print. (default: 100)",
    transform: WholeNumber.parse)
  private var limit: UInt32 = 100

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Print only keys after this one, or before it with --reverse. The key need not exist.", valueName: "key"))
  private var after: String?

  @OptionGroup private var range: KeyRangeOptions

  @Flag(help: "Print in descending key order.")
  private var reverse = false

  @Flag(help: "Omit values.")
  private var keysOnly = false

  @OptionGroup var outputOptions: OutputOptions

  func run() async throws {
    let saysMore = Output.isTerminal && isatty(STDERR_FILENO) == 1
    // One more entry than the page has tells whether another page follows.
    var entries = try await entries(limit: Int(saysMore && limit < .max ? limit + 1 : limit))
    let hasMore = entries.count > limit
    if hasMore { entries.removeLast() }
    try EntryOutput.write(entries, keysOnly: keysOnly, orIfEmpty: "No entries match.")
    if hasMore, let last = entries.last { logLine("more: \(EscapedText.line(nextCommand(after: last.key)))") }
  }

  private func entries(limit: Int) async throws -> [Entry] {
    let store = try connection.client().store(store.name)
    if range.isPrefix {
      return try await store.page(
        offset: offset, limit: limit, prefix: range.prefix, after: after, reverse: reverse, keysOnly: keysOnly)
    }
    var entries: [Entry] = []
    guard limit > 0 else { return entries }
    var skipped: UInt64 = 0
    try await range.forEachEntry(of: store, after: after, reverse: reverse, keysOnly: keysOnly) { entry in
      if skipped < offset { skipped += 1 } else { entries.append(entry) }
      return entries.count < limit
    }
    return entries
  }

  /// Returns the command that prints the page after a key.
  private func nextCommand(after key: String) -> String {
    var words = ["page", store.name, "--after", key] + range.words(reverse: reverse)
    if ConsoleSession.current == nil { words.insert("larder", at: 0) }
    if limit != 100 { words += ["--limit", "\(limit)"] }
    if reverse { words.append("--reverse") }
    if keysOnly { words.append("--keys-only") }
    return words.map(CommandWords.quotedForShell).joined(separator: " ")
  }
}
