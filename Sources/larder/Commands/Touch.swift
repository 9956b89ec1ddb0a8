import ArgumentParser
import Larder

struct Touch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Sets the time until entries expire.",
    discussion: """
      \(ExpiryChange.help)

      Example: larder touch sessions user:7 --expire 30m
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument
  @OptionGroup private var keys: KeysArguments

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The time until the entries expire, from now, such as 10m.", valueName: "time"),
    transform: { try DurationArgument($0) })
  private var expire: DurationArgument

  func validate() throws { try keys.requireKeys() }

  func run() async throws {
    try await ExpiryChange(expiresIn: expire.duration).make(for: keys.requests(), in: connection.client(), store)
  }
}

struct Persist: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Makes entries stay until they are deleted.",
    discussion: """
      Removes the expiry of entries. \(ExpiryChange.help)

      Example: larder persist sessions user:7
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument
  @OptionGroup private var keys: KeysArguments

  func validate() throws { try keys.requireKeys() }

  func run() async throws {
    try await ExpiryChange(expiresIn: nil).make(for: keys.requests(), in: connection.client(), store)
  }
}

/// Changes when entries expire, by writing their values again.
private struct ExpiryChange {
  static let help = """
    Writes the values again, all of them or none, on the condition that nothing else has changed them in between; so \
    their revisions change. Keys from a file are handled in steps of up to 10,000. Prints the number of entries. Keys \
    without an entry are ignored; if none has one, the exit status is 1.
    """

  let expiresIn: Duration?

  func make(for requests: [[String]], in client: LarderClient, _ argument: StoreArgument) async throws {
    let store = client.store(argument.name)
    var count = 0
    for keys in requests { count += try await OptimisticChange.perform { try await change(keys, in: store) } }
    guard count > 0 else {
      throw CommandFailure(
        .notFound,
        "'\(argument.name)' has no entries with these keys; 'larder page \(argument.name) --keys-only' lists its keys")
    }
    var output = Output()
    try output.writeLine(String(count))
  }

  private func change(_ keys: [String], in store: RemoteStore) async throws -> Int {
    var batch = WriteBatch()
    var changed: Set<String> = []
    for entry in try await store.getMany(keys).compactMap(\.self) where changed.insert(entry.key).inserted {
      batch.put(Write(entry.key, entry.value, if: .revision(entry.revision), expiresIn: expiresIn))
    }
    if !batch.isEmpty { _ = try await store.apply(batch) }
    return batch.count
  }
}
