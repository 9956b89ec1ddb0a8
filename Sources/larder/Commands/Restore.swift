import ArgumentParser
import Larder
import Platform
import Storage

struct Restore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes the entries of a backup into a store.",
    discussion: """
      The store is made if it isn't there, with the engine that it had when the backup was made, unless --engine says otherwise. \
      A store that has entries is refused unless --merge is given: then entries of the backup take the place of those with the same \
      key, and all others stay. Entries get new revisions, for a store never uses one again; those that have expired meanwhile are \
      left out.

      A file is verified first: if it is damaged, nothing is changed, and the exit status is 5. What comes from a pipe is checked as it \
      is written, and all that is intact up to a damaged place is restored.

      Example: larder restore sessions sessions.backup
      Example: zcat sessions.backup.gz | larder restore copy - --engine memory
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  @Argument(help: "A file that 'larder backup' has written, or - for standard input.", completion: .file())
  var file: String

  @Option(
    help: "What keeps the store if it has to be made, as in 'larder create'. (default: what kept it before)",
    completion: .list(EngineChoices.all))
  var engine: String?

  @Flag(help: "Restore into a store that has entries.")
  var merge = false

  func run() async throws {
    var source = try BackupSource(path: file)
    if file != "-", source.size != nil { try verify() }
    let header: BackupHeader
    do { header = try source.readHeader() } catch let damage as BackupDamage {
      throw source.failure(damage, "nothing was changed")
    }
    let client = try connection.client()
    try await prepareStore(client, header)
    try await Self.run(client.store(store.name), from: source)
  }

  /// Reads all of the file before anything is changed.
  private func verify() throws {
    var source = try BackupSource(path: file)
    do { while try source.next() != nil {} } catch let damage as BackupDamage {
      throw source.failure(
        damage,
        "nothing was changed; take another backup, or restore what is intact with 'larder restore \(store.name) - < FILE'"
      )
    }
  }

  /// Has the store be there, and be empty if it must.
  private func prepareStore(_ client: LarderClient, _ header: BackupHeader) async throws {
    guard let found = try await client.stores().first(where: { $0.name == store.name }) else {
      return try await client.createStore(store.name, engine: engine ?? header.specification)
    }
    if let engine, engine != found.specification, engine != found.engine {
      throw CommandFailure(
        .refused,
        "the store '\(found.name)' is there, kept by \(found.specification); leave --engine out to restore into it")
    }
    guard found.entries == 0 || merge else {
      throw CommandFailure(
        .refused,
        "the store '\(found.name)' has entries (\(found.entries)); restore into another store, drop this one, or add to it with --merge"
      )
    }
  }

  /// On the main thread, which may wait for input while other threads send.
  @MainActor
  private static func run(_ store: RemoteStore, from source: consuming BackupSource) async throws {
    var progress = Progress(total: source.size)
    var sender = BatchSender(store, of: .backup)
    do {
      while let entry = try source.next() {
        let now = wallMilliseconds()
        if entry.expiry != 0, entry.expiry <= now { continue }
        guard let value = EntryValue(entry.kind, entry.value) else {
          throw CommandFailure(.damaged, "entry \(source.entries) is no list; \(sender.loaded) entries are restored")
        }
        let left = entry.expiry == 0 ? nil : min(entry.expiry - now, UInt64(TimeSpan.range.upperBound))
        let write = Write(entry.key, value, expiresIn: left.map { .milliseconds($0) })
        let lane = BatchSender.lane(of: write.key)
        if sender.isFull(lane, for: write.byteCount) {
          try await sender.send(lane)
          progress.show(sender.loaded, done: source.offset)
        }
        sender.add(write, of: write.byteCount, number: source.entries, to: lane)
      }
      try await sender.finish()
    } catch let damage as BackupDamage {
      progress.clear()
      try await sender.finish()
      throw source.failure(damage, "the entries before it are restored (\(sender.loaded))")
    } catch {
      progress.clear()
      throw error
    }
    progress.finish("restored", sender.loaded, bytes: source.offset)
  }
}
