import ArgumentParser
import Larder

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the changes of a store as they happen, one line of JSON each, until interrupted.",
    discussion: """
      A written entry is printed as in 'larder page', with its "revision". A deletion is \
      {"key":…,"deleted":true,"revision":…}; the deletion of all entries is {"deletedAll":true,"revision":…}. The \
      changes of one request have the same revision and follow each other. Expiry prints no line: \
      "expiresInMilliseconds" announced it when the entry was written.

      Reconnects if the connection is lost, without missing a change. If the server no longer keeps changes that were \
      not printed yet, the exit status is 3: dump the store, then watch it again.

      Example: larder watch items --prefix a
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The first revision to print, if the server still keeps it. (default: print only new changes)",
      valueName: "revision"),
    transform: WholeNumber.parse)
  private var from: UInt64?

  @Option(parsing: .unconditional, help: "Print only keys with this prefix, and the deletion of all entries.")
  private var prefix = ""

  @Flag(help: "Omit values.")
  private var keysOnly = false

  func validate() throws {
    guard from != 0 else { throw ValidationError("revisions start at 1; omit --from to print only new changes") }
  }

  func run() async throws {
    let commits = try connection.client().store(store.name).watch(from: from, prefix: prefix, keysOnly: keysOnly)
    try await runUntilInterrupted { [keysOnly] in try await Self.print(commits, keysOnly: keysOnly) }
  }

  private static func print(_ commits: RemoteStore.Watch, keysOnly: Bool) async throws {
    var output = Output()
    for try await commit in commits {
      for change in commit.changes {
        ChangeLine.append(change, revision: commit.revision, keysOnly: keysOnly, to: &output.bytes)
        try output.flushIfLarge()
      }
      try output.flush()
    }
  }
}
