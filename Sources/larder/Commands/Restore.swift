import ArgumentParser
import Documents
import Larder
import Platform
import Storage

struct Restore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes the entries and indexes of a backup to a store.",
    discussion: """
      Creates the store if it does not exist, with the engine it had when the backup was made or the one given with \
      --engine. Refuses a store that has entries unless --merge is given: then entries of the backup replace those \
      with the same keys, and all others remain. Entries get new revisions, because a store never reuses one. Expired \
      entries are skipped. Indexes of the backup are created before the entries are written. A store that has another \
      index with the name of one of them is refused.

      Ctrl-C and errors leave restored entries in the store, and larder prints the number for --resume, with which the \
      same command continues. Entries that --resume skips stay as they are.

      A file is verified before anything is changed; if it is damaged, the exit status is 5. Input from a pipe is \
      checked while it is written, so everything before the first damage is restored.

      Example: larder restore sessions sessions.backup
      Example: zcat sessions.backup.gz | larder restore copy - --engine memory
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "A file that 'larder backup' wrote, or - for standard input.", completion: .file())
  private var file: String

  @Option(
    help: "The engine of a new store, as in 'larder create'. (default: the engine in the backup)",
    completion: .custom(EngineCompletion.candidates))
  private var engine: String?

  @Flag(help: "Restore into a store that has entries.")
  private var merge = false

  @Flag(help: "Don't create the indexes of the backup.")
  private var noIndexes = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Skip this many entries, which an interrupted restore of the same backup has restored.", valueName: "entries"),
    transform: WholeNumber.parse)
  private var resume: UInt64 = 0

  func run() async throws {
    let command = self
    try await StopRequest.observe { try await command.restore() }
  }

  private func restore() async throws {
    var input = try BackupInput(path: file)
    if file != "-", input.size != nil { try verify() }
    let header: BackupHeader
    do { header = try input.readHeader() } catch let damage as BackupDamage {
      throw input.failure(damage, "nothing was changed")
    }
    let client = try connection.client()
    let remote = client.store(store.name)
    var indexes = noIndexes ? [] : header.indexes
    if let existing = try await client.stores().first(where: { $0.name == store.name }) {
      try check(existing)
      indexes = try await missing(indexes, in: remote)
    } else {
      guard resume == 0 else {
        throw CommandFailure(.refused, "there is no store '\(store.name)' to continue; restore without --resume")
      }
      try await client.createStore(store.name, engine: engine ?? header.specification)
    }
    for index in indexes { try await remote.ensureIndex(index) }
    try await Self.restore(input, skipping: Int(clamping: resume), into: remote, indexCount: indexes.count)
  }

  /// Reads the whole file before anything is changed.
  private func verify() throws {
    var input = try BackupInput(path: file)
    do { while try input.next() != nil {} } catch let damage as BackupDamage {
      throw input.failure(
        damage,
        "nothing was changed; use another backup, or restore the intact part with "
          + "'larder restore \(store.name) - < FILE'"
      )
    }
  }

  /// Checks that an existing store may be restored into.
  private func check(_ existing: Larder.StoreDescription) throws {
    if let engine, engine != existing.specification, engine != existing.engine {
      throw CommandFailure(
        .refused,
        "the store '\(existing.name)' already exists with the engine \(existing.specification); "
          + "omit --engine to restore into it")
    }
    guard resume == 0 || existing.entries > 0 else {
      throw CommandFailure(
        .refused,
        "the store '\(existing.name)' is empty, without the entries that --resume skips; restore without --resume")
    }
    guard existing.entries == 0 || merge || resume > 0 else {
      throw CommandFailure(
        .refused,
        "the store '\(existing.name)' has entries (\(existing.entries)); restore into another store, drop this one, "
          + "or add to it with --merge")
    }
  }

  /// Returns those indexes of the backup that an existing store doesn't have, and checks that it can have them.
  private func missing(_ indexes: [DocumentIndex], in remote: RemoteStore) async throws -> [DocumentIndex] {
    guard !indexes.isEmpty else { return [] }
    let existing = try await remote.indexes().map(\.index)
    for index in indexes {
      guard let other = existing.first(where: { $0.name == index.name }), other != index else { continue }
      throw CommandFailure(
        .refused,
        LarderCommand.oneLine(
          "the store '\(store.name)' has another index '\(index.name)', \(other), and the backup has \(index); delete "
            + "the store's index first, or omit those of the backup with --no-indexes"))
    }
    let missing = indexes.filter { !existing.contains($0) }
    let count = existing.count + missing.count
    guard count <= Store.maxIndexCount else {
      throw CommandFailure(
        .refused,
        "the store '\(store.name)' would have \(count) indexes, but the limit is \(Store.maxIndexCount); delete some "
          + "first, or omit those of the backup with --no-indexes")
    }
    return missing
  }

  /// Runs on the main thread, which may block on the input while other threads send.
  @MainActor
  private static func restore(
    _ input: consuming BackupInput, skipping skippedCount: Int, into store: RemoteStore, indexCount: Int
  ) async throws {
    var progress = Progress(total: input.size)
    var writer = BatchWriter(store, itemNoun: .entry)
    do {
      while let entry = try input.next() {
        let now = wallMilliseconds()
        if input.entryCount <= skippedCount || (entry.expiry != 0 && entry.expiry <= now) { continue }
        guard let value = EntryValue(entry.kind, backupBytes: entry.value) else {
          throw CommandFailure(
            .damaged,
            "entry \(input.entryCount) is not a valid list; the entries before it are restored (\(writer.acknowledgedCount))"
          )
        }
        let remaining = entry.expiry == 0 ? nil : min(entry.expiry - now, UInt64(DurationArgument.range.upperBound))
        let write = Write(entry.key, value, expiresIn: remaining.map { .milliseconds($0) })
        let partition = BatchWriter.partition(of: write.key)
        if writer.isFull(partition, for: write.byteCount) {
          try await writer.send(partition)
          progress.show(writer.acknowledgedCount, done: input.offset)
        }
        writer.add(write, byteCount: write.byteCount, number: input.entryCount, to: partition)
      }
      try await writer.finish()
    } catch let damage as BackupDamage {
      progress.clear()
      try await writer.finish()
      throw input.failure(damage, "the entries before it are restored (\(writer.acknowledgedCount))")
    } catch is CancellationError {
      progress.clear()
      try await writer.finish()
      throw CommandFailure(
        .unreachable,
        "interrupted; all entries up to \(input.entryCount) are restored"
          + ResumeAdvice.text(after: max(input.entryCount, skippedCount)))
    } catch {
      progress.clear()
      throw error
    }
    guard input.entryCount >= skippedCount else {
      throw CommandFailure(
        .usage,
        "the backup has only \(HumanReadable.amount(input.entryCount)), fewer than --resume skips; nothing was changed")
    }
    progress.finish("restored", writer.acknowledgedCount, indexes: indexCount, bytes: input.offset)
  }
}
