import ArgumentParser
import Larder

struct Copy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Copies an entry to another key.",
    discussion: """
      \(EntryCopy.help)

      Example: larder copy items apple apple-backup
      """)

  @OptionGroup private var copy: EntryCopy

  func run() async throws { try await copy.make(deletingOriginal: false) }
}

struct Rename: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Moves an entry to another key.",
    discussion: """
      \(EntryCopy.help)

      Example: larder rename items appel apple
      """)

  @OptionGroup private var copy: EntryCopy

  func run() async throws { try await copy.make(deletingOriginal: true) }
}

/// Copies or moves an entry in one step.
private struct EntryCopy: ParsableArguments {
  static let help = """
    Takes place in one step, with the value and the expiry that the entry has at that moment. Prints the new revision. \
    If the key has no entry, the exit status is 1. If the new key has one, nothing changes, and the exit status is 3, \
    unless --replace is given.
    """

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var entry: StoreAndKeyArguments

  @Argument(help: ArgumentHelp("The entry's new key.", valueName: "new-key"), transform: KeyLength.validate)
  private var newKey: String

  @Flag(help: "Replace the entry that the new key may have.")
  private var replace = false

  func make(deletingOriginal: Bool) async throws {
    let (name, key) = (entry.store.name, entry.key)
    guard key != newKey else { throw CommandFailure(.usage, "the new key is the same; nothing was changed") }
    let store = try connection.client().store(name)
    let revision = try await OptimisticChange.perform {
      guard let entry = try await store.get(key) else {
        throw CommandFailure(
          .notFound, "'\(name)' has no entry '\(key)'; 'larder page \(name) --keys-only' lists its keys")
      }
      var batch = WriteBatch()
      batch.put(
        Write(newKey, entry.value, if: replace ? .always : .absent, expiresIn: entry.expiresIn))
      if deletingOriginal {
        batch.delete(key, ifRevision: entry.revision)
      } else {
        batch.check(key, hasRevision: entry.revision)
      }
      do { return try await store.apply(batch) } catch let error as LarderError where error.kind == .conditionFailed {
        if replace { throw error }
        guard try await store.get(newKey) != nil else { throw error }
        throw CommandFailure(
          .refused, "'\(name)' has an entry '\(newKey)'; nothing was changed; add --replace to replace it")
      }
    }
    var output = Output()
    try output.writeLine(String(revision ?? 0))
  }
}
