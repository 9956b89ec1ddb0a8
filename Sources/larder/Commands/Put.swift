import ArgumentParser
import Larder
import Platform

struct Put: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes an entry.",
    discussion: """
      Prints the entry's revision. A condition that does not hold is refused with exit status 3, and nothing is written.

      Example: larder put items apple red --expire 10s
      Example: larder put pictures cat.png < cat.png
      """)

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var entry: StoreAndKeyArguments

  @Argument(help: "The value. Without it, the value is what comes on standard input, to the last byte.")
  var value: String?

  @Flag(help: "Write only if there is no entry of that key.")
  var ifAbsent = false

  @Option(help: ArgumentHelp("Write only if the entry has this revision.", valueName: "revision"))
  var ifRevision: UInt64?

  @Option(
    help: ArgumentHelp(
      "How long the entry lasts, such as 10s. (default: until it is written anew or deleted)", valueName: "time"),
    transform: { try TimeSpan($0) })
  var expire: TimeSpan?

  func validate() throws {
    if ifAbsent && ifRevision != nil {
      throw ValidationError("--if-absent and --if-revision can't both hold; give one of them")
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
    let input = InputFile()
    if input.isTerminal { logLine("Type the value, and end it with Ctrl-D on a line of its own.") }
    return try input.readAll(limit: LarderClient.Configuration().maxFrameBytes)
  }
}
