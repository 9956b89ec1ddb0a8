import ArgumentParser
import Basics
import Documents
import Larder
import Platform
import Storage

struct Backup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes a snapshot of a store to a file that can be verified.",
    discussion: """
      Does not block writers. The file contains keys, kinds, values, revisions, expiry times and the definitions of \
      indexes; 'larder restore' reads it and 'larder verify' checks it. larder writes to FILE.tmp first, and replaces \
      FILE when the new backup is complete and on disk. Ctrl-C removes FILE.tmp.

      Example: larder backup sessions sessions.backup
      Example: larder backup sessions - | gzip > sessions.backup.gz
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "The file to write, or - for standard output.", completion: .file())
  private var file: String

  private static let flushThreshold = 1 << 20

  func run() async throws {
    let command = self
    try await StopRequest.observe { try await command.backUp() }
  }

  private func backUp() async throws {
    let client = try connection.client()
    guard let description = try await client.stores().first(where: { $0.name == store.name }) else {
      throw CommandFailure(.refused, "there is no store \"\(store.name)\"; 'larder stores' lists the stores")
    }
    let indexes = try await Self.indexes(of: client.store(store.name))
    let output = try BackupOutput(path: file)
    var progress = Progress(total: Int(description.entries))
    var writer = BackupWriter(
      BackupHeader(
        made: wallMilliseconds(), store: description.name, specification: description.specification, indexes: indexes))
    do {
      for try await entry in client.store(store.name).all() {
        let expiry = entry.expiresIn.map { wallMilliseconds() + max(1, $0.wholeMilliseconds) } ?? 0
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
