import ArgumentParser
import Larder

struct Load: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes entries from lines of JSON.",
    discussion: """
      The lines are those of 'larder dump', or with --key any objects, of which the whole line is the value. In lines of 'dump', \
      a "value" that is a string is its text, and any other JSON is taken as it stands; revisions are ignored. Of lines with the \
      same key the last one stays. Blank lines are passed over.

      A line that is not right stops it with exit status 2, and the lines before it are loaded. On a terminal there is a \
      progress bar.

      Example: larder load items items.jsonl
      Example: zcat users.jsonl.gz | larder load users - --key email
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  @Argument(help: "A file of JSON lines, or - for standard input.", completion: .file())
  var file: String

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The member that holds the key: a string, or an integer, which becomes its decimal digits.", valueName: "field"))
  var key: String?

  func run() async throws {
    let store = try connection.client().store(store.name)
    // A store that isn't there is better found out before the input is read.
    _ = try await store.count()
    try await Loading.run(store, from: InputFile(path: file), keyField: key)
  }
}
