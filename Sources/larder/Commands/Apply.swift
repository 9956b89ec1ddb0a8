import ArgumentParser
import Larder

struct Apply: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Executes operations from lines of JSON, all or none.",
    discussion: """
      \(OperationLineParser.help)

      Conditions refer to the entries as they are before. The operations then take effect in their order, as one \
      commit of up to 65,536 operations; their updates are subject to the server's limits.find-time and \
      limits.find-memory. Prints the new revision, or 0 if nothing was written. If a condition does not hold, or an \
      operation is impossible, nothing is written, the error names the operation by its number, and the exit status \
      is 3, or 1 for an update of a key without an entry. Blank lines are skipped, and not counted. If a line is \
      invalid, nothing is sent, and the exit status is 2.

      Example: larder apply accounts transfer.jsonl
      Example: echo '{"update":"visits","set":{"$inc":{"n":1}},"create":true}' | larder apply counters -
      """)

  /// The size of the lines after which no server accepts them as one request.
  private static let maxByteCount = 6 * LarderClient.Configuration().maxFrameBytes

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "A file of JSON lines, or - for standard input.", completion: .file())
  private var file: String

  func run() async throws {
    let batch = try await Self.batch(from: InputFile(path: file))
    let revision = try await connection.client().store(store.name).apply(batch)
    var output = Output()
    try output.writeLine(String(revision ?? 0))
  }

  /// Runs on the main thread, which may block on the input.
  @MainActor
  private static func batch(from input: consuming InputFile) throws -> WriteBatch {
    var lines = LineReader(input)
    var parser = OperationLineParser()
    var batch = WriteBatch()
    do {
      while true {
        guard let line = lines.next() else {
          if try lines.fill() { continue } else { return batch }
        }
        guard lines.bytesRead <= maxByteCount else {
          throw CommandFailure(
            .refused, "the lines have more than \(maxByteCount) bytes, which no server accepts as one step; split them")
        }
        if lines.buffer.span.extracting(line).isBlank { continue }
        try parser.parse(lines.buffer.span.extracting(line), into: &batch)
      }
    } catch let error as LineError {
      throw CommandFailure(
        .usage, "line \(lines.number): \(error); nothing was sent; correct the line and try again")
    }
  }
}
