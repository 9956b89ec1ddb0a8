import ArgumentParser
import Larder
import Platform

struct Put: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes an entry.",
    discussion: """
      Prints the entry's new revision. If a condition does not hold, nothing is written, and the exit status is 3.

      A value from a file or standard input is sent while it is read, so it takes little memory, and the entry is written \
      when all of it has arrived.

      Example: larder put items apple red --expire 10s
      Example: larder put items temperature -- -5
      Example: larder put pictures cat.png --file cat.png
      Example: tar cz photos | larder put backups photos
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var entry: StoreAndKeyArguments

  @Argument(help: "The value. (default: all bytes of standard input)")
  private var value: String?

  @Option(help: "Write the contents of this file; - for standard input.", completion: .file())
  private var file: String?

  @Flag(help: "Write only if the key has no entry.")
  private var ifAbsent = false

  @Option(
    parsing: .unconditional, help: ArgumentHelp("Write only if the entry has this revision.", valueName: "revision"),
    transform: WholeNumber.parse)
  private var ifRevision: UInt64?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The time until the entry expires, such as 10s. (default: it does not expire)", valueName: "time"),
    transform: { try DurationArgument($0) })
  private var expire: DurationArgument?

  func validate() throws {
    if ifAbsent && ifRevision != nil {
      throw ValidationError("--if-absent and --if-revision can't be combined")
    }
    if value != nil && file != nil { throw ValidationError("give the value as an argument or with --file, not both") }
  }

  func run() async throws {
    let revision = try await put(to: try connection.client().store(entry.store.name))
    var output = Output()
    try output.writeLine(String(revision))
  }

  private func put(to store: RemoteStore) async throws -> UInt64 {
    let condition: WriteCondition = ifAbsent ? .absent : ifRevision.map { .revision($0) } ?? .always
    if let value {
      return try await store.put(entry.key, value.utf8, if: condition, expiresIn: expire?.duration)
    }
    let chunks = try InputChunks(path: file ?? "-")
    if chunks.isTerminal { logLine("Type the value, then press Ctrl-D on a line of its own.") }
    return try await store.put(entry.key, chunks: chunks, if: condition, expiresIn: expire?.duration)
  }
}
