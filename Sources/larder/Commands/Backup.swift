import ArgumentParser
import Basics
import Larder
import Platform
import Storage

struct Backup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes all entries of a store, as they are at one moment, into a file that tells whether it is intact.",
    discussion: """
      Writers are not held up meanwhile. The file has keys, kinds, values, revisions and the times when entries expire; \
      'larder restore' reads it and 'larder verify' checks it. A file of that name is replaced once the new one is whole and on \
      the disk. Until then it is FILE.tmp.

      Example: larder backup sessions sessions.backup
      Example: larder backup sessions - | gzip > sessions.backup.gz
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var store: StoreArgument

  @Argument(help: "The file to write, or - for standard output.", completion: .file())
  var file: String

  private static let pieceBytes = 1 << 20

  func run() async throws {
    let client = try connection.client()
    guard let listed = try await client.stores().first(where: { $0.name == store.name }) else {
      throw CommandFailure(.refused, "there is no store \"\(store.name)\"; 'larder stores' lists the stores")
    }
    let target = try BackupFile(path: file)
    var progress = Progress(total: Int(listed.entries))
    var writer = BackupWriter(
      BackupHeader(made: wallMilliseconds(), store: listed.name, specification: listed.specification))
    do {
      for try await entry in client.store(store.name).all() {
        let expiry = entry.expiresIn.map { wallMilliseconds() + max(1, $0.wholeMilliseconds) } ?? 0
        writer.add(
          entry.key, entry.value.backupBytes, kind: entry.value.kind, expiry: expiry, revision: entry.revision)
        if writer.count >= Self.pieceBytes { try target.write(writer.take()) }
        progress.show(Int(writer.entries), done: Int(writer.entries))
      }
      try target.write(writer.finish())
      try target.finish()
    } catch {
      progress.clear()
      target.giveUp()
      throw error
    }
    progress.finish("backed up", Int(writer.entries), bytes: target.byteCount)
  }
}
