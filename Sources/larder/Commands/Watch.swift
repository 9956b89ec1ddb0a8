import ArgumentParser
import Larder

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints the changes of a store as they are made, one line of JSON each, until it is interrupted.",
    discussion: """
      An entry that was put is printed as 'larder page' prints it, and "revision" with it. A deletion is \
      {"key":…,"deleted":true,"revision":…}, that of all entries {"deletedAll":true,"revision":…}. Changes of one request have one revision and \
      stand together. An entry that expires has no line of its own: "expiresInMilliseconds" said so when it was put.

      A lost connection is made anew, and no change is left out. When the server does not keep changes any more that were not printed, the \
      command ends with status 3: dump the store, and watch it from then on.

      Example: larder watch items --prefix a
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  @Option(
    help: ArgumentHelp(
      "The first revision whose changes are wanted, of those the server has kept. (default: those from now on)",
      valueName: "revision"))
  var from: UInt64?

  @Option(parsing: .unconditional, help: "Only keys that begin with this, and the deletion of all entries.")
  var prefix = ""

  @Flag(help: "Leave the values out.")
  var keysOnly = false

  func validate() throws {
    guard from != 0 else { throw ValidationError("revisions begin at 1; leave --from out for changes from now on") }
  }

  func run() async throws {
    let commits = try connection.client().store(store.name).watch(from: from, prefix: prefix, keysOnly: keysOnly)
    try await untilInterrupted { [keysOnly] in try await Self.print(commits, keysOnly: keysOnly) }
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
