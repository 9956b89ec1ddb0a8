import ArgumentParser
import Larder
import Platform

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the changes of a store as they happen, one line of JSON each, until interrupted.",
    discussion: """
      A written entry is printed as in 'larder page', with its "revision". A deletion is \
      {"key":…,"deleted":true,"revision":…}; the deletion of all entries is {"deletedAll":true,"revision":…}. The \
      changes of one request have the same revision and follow each other; all but the last have "more":true. Expiry \
      prints no line: "expiresInMilliseconds" announced it when the entry was written. When the watch has begun, a \
      line on standard error says from which revision.

      'larder apply' makes the printed changes in another store.

      Reconnects if the connection is lost, without missing a change. If the server no longer keeps changes that were \
      not printed yet, the exit status is 3: dump the store, then watch it again.

      Example: larder watch items --prefix a
      Example: larder watch items --from 1042 | larder --server tcp:localhost:7711 apply items -
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
    let command = self
    try await runUntilInterrupted { try await command.print(commits) }
  }

  private func print(_ commits: RemoteStore.Watch) async throws {
    var commits = commits.makeAsyncIterator()
    let revision = try await commits.start()
    logLine("larder: watching '\(store.name)' from revision \(from ?? revision + 1)")
    var output = Output()
    while let commit = try await commits.next() {
      ChangeLine.append(commit, keysOnly: keysOnly, to: &output.bytes)
      try output.flush()
    }
  }
}
