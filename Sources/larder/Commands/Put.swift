import ArgumentParser
import Larder
import Platform

struct Put: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes an entry.",
    discussion: """
      Prints the entry's new revision. If a condition does not hold, nothing is written, and the exit status is 3.

      Example: larder put items apple red --expire 10s
      Example: larder put items temperature -- -5
      Example: larder put pictures cat.png < cat.png
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var entry: StoreAndKeyArguments

  @Argument(help: "The value. (default: all bytes of standard input)")
  private var value: String?

  @Flag(help: "Write only if the key has no entry.")
  private var ifAbsent = false

  @Option(help: ArgumentHelp("Write only if the entry has this revision.", valueName: "revision"))
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
  }

  func run() async throws {
    let client = try connection.client()
    let bytes = try value.map { Array($0.utf8) } ?? standardInput()
    let condition: WriteCondition = ifAbsent ? .absent : ifRevision.map { .revision($0) } ?? .always
    let revision = try await client.store(entry.store.name)
      .put(entry.key, bytes, if: condition, expiresIn: expire?.duration)
    var output = Output()
    try output.writeLine(String(revision))
  }

  private func standardInput() throws -> [UInt8] {
    guard ConsoleSession.current?.ownsInput != true else {
      throw CommandFailure(.usage, "standard input has the commands; give the value as an argument")
    }
    let input = InputFile()
    if input.isTerminal { logLine("Type the value, then press Ctrl-D on a line of its own.") }
    let limit = LarderClient.Configuration().maxFrameBytes
    return try input.readAll(
      limit: limit,
      orThrow: CommandFailure(
        .refused,
        "standard input is longer than \(limit) bytes, which no server accepts as a value; split it into several entries"
      ))
  }
}
