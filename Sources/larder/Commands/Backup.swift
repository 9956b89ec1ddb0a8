import ArgumentParser
import Basics
import Documents
import Larder
import Platform
import Storage

struct Backup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes a snapshot of a store, or its latest changes, to a file.",
    discussion: """
      Does not block writers. The file contains keys, kinds, values, revisions, expiry times and the definitions of \
      indexes; 'larder restore' reads it and 'larder verify' checks it. larder writes to FILE.tmp first, and replaces \
      FILE when the new backup is complete and on disk. Ctrl-C removes FILE.tmp. Prints a revision up to which the \
      backup has all changes, unless the backup itself goes to standard output.

      With --since and that revision, writes only the changes after it, as lines of JSON that 'larder apply' reads: \
      those of 'larder watch', and {"through":REVISION} at the end. A server keeps a store's latest changes, 16 MiB of \
      them, while the store is watched and for a minute after a watch or a backup ends. If changes are missing, the \
      exit status is 3; make a whole backup then.

      Example: larder backup sessions sessions.backup
      Example: larder backup sessions sessions.changes --since 1042
      Example: larder backup sessions - | gzip > sessions.backup.gz
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "The file to write, or - for standard output.", completion: .file())
  private var file: String

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Write only the changes after this revision.", valueName: "revision"),
    transform: WholeNumber.parse)
  private var since: UInt64?

  private static let flushThreshold = 1 << 20

  func validate() throws {
    guard since.map({ $0 < UInt64.max }) ?? true else { throw ValidationError("there is no revision after it") }
  }

  func run() async throws {
    let command = self
    try await StopRequest.observe {
      let revision =
        if let since = command.since { try await command.backUpChanges(after: since) } else {
          try await command.backUp()
        }
      guard command.file != "-" else { return }
      var output = Output()
      try output.writeLine(Output.isTerminal ? "The backup has all changes up to revision \(revision)." : "\(revision)")
    }
  }

  /// - Returns: A revision up to which the backup has all changes.
  private func backUp() async throws -> UInt64 {
    let client = try connection.client()
    guard let description = try await client.stores().first(where: { $0.name == store.name }) else {
      throw CommandFailure(.refused, "there is no store \"\(store.name)\"; 'larder stores' lists the stores")
    }
    let indexes = try await Self.indexes(of: client.store(store.name))
    // Until the backup ends, and for a while after that, the server keeps the changes that follow the snapshot.
    var changes = client.store(store.name).watch(keysOnly: true).makeAsyncIterator()
    var revision = try await changes.start()
    let output = try BackupOutput(path: file)
    var progress = Progress(total: Int(clamping: description.entries))
    var writer = BackupWriter(
      BackupHeader(
        made: wallMilliseconds(), store: description.name, specification: description.specification, indexes: indexes))
    do {
      for try await entry in client.store(store.name).all() {
        let expiry = entry.expiresIn.map { wallMilliseconds() + max(1, $0.wholeMilliseconds) } ?? 0
        revision = max(revision, entry.revision)
        writer.add(
          entry.key, entry.value.backupBytes, kind: entry.value.kind, expiry: expiry, revision: entry.revision)
        if StopRequest.isMade { throw CommandFailure(.unreachable, "interrupted; no backup was made") }
        if writer.count >= Self.flushThreshold { try output.write(writer.take()) }
        progress.show(Int(writer.entries), done: Int(writer.entries))
      }
      try output.write(writer.finish())
      try output.commit()
    } catch {
      progress.clear()
      output.discard()
      throw error
    }
    progress.finish("backed up", Int(writer.entries), indexes: indexes.count, bytes: output.byteCount)
    withExtendedLifetime(changes) {}
    return revision
  }

  /// Writes the changes after a revision up to now.
  /// - Returns: The revision of the last one.
  private func backUpChanges(after revision: UInt64) async throws -> UInt64 {
    let store = try connection.client().store(store.name)
    var commits = store.watch(from: revision + 1).makeAsyncIterator()
    do throws(LarderError) { _ = try await commits.start() } catch {
      throw error.kind == .changesLost ? Self.lackOfChanges(after: revision) : error
    }
    let end = try await store.stats()["revision"] ?? revision
    let output = try BackupOutput(path: file)
    var (bytes, last, count) = ([UInt8](), revision, 0)
    var progress = Progress("changes", total: Int(clamping: end - min(end, revision)))
    do {
      while last < end, let commit = try await commits.next() {
        ChangeLine.append(commit, keysOnly: false, to: &bytes)
        (last, count) = (commit.revision, count + commit.changes.count)
        if StopRequest.isMade { throw CommandFailure(.unreachable, "interrupted; no backup was made") }
        if bytes.count >= Self.flushThreshold {
          try output.write(bytes)
          bytes.removeAll(keepingCapacity: true)
        }
        progress.show(count, done: Int(clamping: last - revision))
      }
      ChangeLine.append(through: last, to: &bytes)
      try output.write(bytes)
      try output.commit()
    } catch let error as LarderError where error.kind == .changesLost {
      progress.clear()
      output.discard()
      throw Self.lackOfChanges(after: revision)
    } catch {
      progress.clear()
      output.discard()
      throw error
    }
    progress.finish("backed up", count, bytes: output.byteCount)
    return last
  }

  private static func lackOfChanges(after revision: UInt64) -> any Error {
    CommandFailure(
      .refused,
      "the server no longer has all changes after revision \(revision); make a whole backup, without --since")
  }

  private static func indexes(of store: RemoteStore) async throws -> [DocumentIndex] {
    let indexes: [DocumentIndex]
    do throws(LarderError) { indexes = try await store.indexes().map(\.index) } catch {
      // An older server has no indexes.
      guard error.kind == .unknownOperation else { throw error }
      return []
    }
    guard BackupHeader.fits(indexes) else {
      throw CommandFailure(.refused, "the server has more or larger indexes than a backup can have; update larder")
    }
    return indexes
  }
}
