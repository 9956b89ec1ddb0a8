import ArgumentParser
import Larder
import Platform

struct CopyStore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copies a store to another one, on this or another server, while clients use it.",
    discussion: """
      Creates the new store if it does not exist, with the engine of the old one or the one given with --engine, and with \
      its indexes. Then copies the entries in the order of their keys, with the changes that clients make meanwhile, and \
      compares both stores. Prints the revision of the old store up to which the new one has all changes. Entries get new \
      revisions. If the stores are different in the end, which means that something else writes to the new one, the exit \
      status is 3.

      A store that has entries is refused unless --overwrite is given: then it becomes equal to the old one, and entries \
      that the old one doesn't have are deleted. Only what is different is written. So --overwrite also continues a copy \
      that was interrupted.

      With --follow, goes on making the changes of the old store in the new one, those of each commit in one step, and \
      waits if a server can't be reached. Ctrl-C makes the last changes, and prints the revision. To switch over: stop \
      what writes to the old store, press Ctrl-C, and give clients the new address.

      Example: larder copy-store orders orders --target tls:db.example:7464 --engine 'replicated?database=main'
      Example: larder copy-store orders orders-copy --follow --overwrite
      """)

  @OptionGroup private var connection: ConnectionOptions

  @Argument(help: "The store to copy.", completion: .custom(StoreNameCompletion.names))
  private var store: String

  @Argument(help: "The name of the new store.")
  private var newStore: String

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The address of the new store's server, as with --server. (default: the same server)", valueName: "address"),
    transform: { try ServerList($0) })
  private var target: ServerList?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The profile of the new store's server, instead of its address.", valueName: "name"))
  private var targetProfile: String?

  @Option(
    help: "The engine of a store that is created, as in 'larder create'. (default: that of the old store)",
    completion: .custom(EngineCompletion.candidates))
  private var engine: String?

  @Flag(help: "Replace what the new store has.")
  private var overwrite = false

  @Flag(help: "Go on making the changes of the old store in the new one, until interrupted.")
  private var follow = false

  /// How long changes may wait.
  private static let pause = Duration.milliseconds(50)
  private static let pauseAfterFailure = Duration.milliseconds(500)

  func validate() throws {
    guard target == nil || targetProfile == nil else {
      throw ValidationError("--target and --target-profile exclude each other")
    }
  }

  func run() async throws {
    let command = self
    try await StopRequest.observe { try await command.copy() }
  }

  private func copy() async throws {
    let client = try connection.client()
    let targetClient = try targetClient() ?? client
    guard let description = try await client.stores().first(where: { $0.name == store }) else {
      throw CommandFailure(.refused, "there is no store '\(store)'; 'larder stores' lists the stores")
    }
    let indexes = try await client.store(store).indexes().map(\.index)
    try await prepareTarget(targetClient, engine: engine ?? description.specification)
    var copy = try await StoreCopy(of: client.store(store), to: targetClient.store(newStore))
    for index in indexes { try await targetClient.store(newStore).ensureIndex(index) }
    do {
      try await copyAll(&copy, count: Int(clamping: description.entries), indexCount: indexes.count)
      if follow { try await follow(&copy) }
    } catch is StoreCopy.SourceLost {
      throw CommandFailure(
        .refused,
        "'\(store)' is another store by now, or its server no longer has all changes; \(Self.continuation), which makes "
          + "'\(newStore)' equal to what it is now")
    }
    var output = Output()
    try output.writeLine(
      Output.isTerminal ? "The copy has all changes up to revision \(copy.revision)." : "\(copy.revision)")
  }

  private func targetClient() throws -> LarderClient? {
    guard target != nil || targetProfile != nil else { return nil }
    return try connection.access(toOther: target, profile: targetProfile).client()
  }

  /// Creates the new store, or checks that it may be written to.
  private func prepareTarget(_ client: LarderClient, engine: String) async throws {
    guard let existing = try await client.stores().first(where: { $0.name == newStore }) else {
      return try await client.createStore(newStore, engine: engine)
    }
    guard existing.entries == 0 || overwrite else {
      throw CommandFailure(
        .refused,
        "the store '\(newStore)' has entries (\(existing.entries)); add --overwrite to make it equal to '\(store)', or "
          + "copy to another store")
    }
  }

  private func copyAll(_ copy: inout StoreCopy, count: Int, indexCount: Int) async throws {
    var progress = Progress(total: count)
    do {
      while try await copy.copyRange() {
        if StopRequest.isMade { throw CommandFailure(.unreachable, "interrupted; \(Self.continuation)") }
        progress.show(copy.comparedCount, done: copy.comparedCount)
      }
      let different = try await copy.differences()
      if let key = different.first {
        throw CommandFailure(
          .refused,
          "entries of '\(newStore)' are different (\(different.count)), such as '\(key)': something else writes to it; "
            + "end that, and \(Self.continuation)")
      }
    } catch {
      progress.clear()
      throw error
    }
    progress.finish("copied", copy.changedCount, indexes: indexCount, bytes: copy.byteCount)
  }

  private static let continuation = "to continue, repeat the command with --overwrite"

  private func follow(_ copy: inout StoreCopy) async throws {
    logLine("larder: '\(newStore)' has all changes up to revision \(copy.revision), and follows")
    var isFailing = false
    while true {
      let isLast = StopRequest.isMade
      do {
        try await copy.catchUp()
        isFailing = false
        if isLast { return }
      } catch let error as LarderError where error.isAboutServer && !isLast {
        if !isFailing { LarderCommand.warn("\(CommandFailure(error).message); trying again") }
        isFailing = true
      }
      try await Task.sleep(for: isFailing ? Self.pauseAfterFailure : Self.pause)
    }
  }
}
