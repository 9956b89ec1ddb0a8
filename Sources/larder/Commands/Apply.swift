import ArgumentParser
import Larder

struct Apply: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Executes operations from lines of JSON, all or none, or the changes of another store.",
    discussion: """
      \(OperationLineParser.help)

      Conditions refer to the entries as they are before. The operations then take effect in their order, as one \
      commit of up to 65,536 operations; their updates are subject to the server's limits.find-time and \
      limits.find-memory. Prints the new revision, or 0 if nothing was written. If a condition does not hold, or an \
      operation is impossible, nothing is written, the error names the operation by its number, and the exit status \
      is 3, or 1 for an update of a key without an entry. Blank lines are skipped, and not counted. If a line is \
      invalid, nothing is sent, and the exit status is 2.

      The lines can also be those of 'larder watch', which are the changes of another store. They are made while they \
      arrive, and the changes of each commit in one step. At the end of the input, prints the revision of the other \
      store up to which all changes are made; errors and Ctrl-C name it, too. Making a change again does no harm.

      Example: larder apply accounts transfer.jsonl
      Example: echo '{"update":"visits","set":{"$inc":{"n":1}},"create":true}' | larder apply counters -
      Example: larder watch orders | larder --server tcp:localhost:7711 apply orders -
      """)

  /// The size of the lines after which no server accepts them as one request.
  private static let maxByteCount = 6 * LarderClient.Configuration().maxFrameBytes

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  @Argument(help: "A file of JSON lines, or - for standard input.", completion: .file())
  private var file: String

  func run() async throws {
    let (store, file) = (try connection.client().store(store.name), file)
    try await StopRequest.observe {
      let revision = try await Self.apply(InputFile(path: file), to: store)
      var output = Output()
      try output.writeLine(String(revision))
    }
  }

  /// Runs on the main thread, which may block on the input.
  /// - Returns: The revision to print.
  @MainActor
  private static func apply(_ input: consuming InputFile, to store: RemoteStore) async throws -> UInt64 {
    var lines = LineReader(input)
    var parser = ChangeLineParser()
    do {
      while true {
        guard let line = lines.next() else {
          if try lines.fill() { continue } else { break }
        }
        if lines.buffer.span.extracting(line).isBlank { continue }
        guard parser.isChange(lines.buffer.span.extracting(line)) else {
          return try await store.apply(batch(beginningWith: line, of: &lines)) ?? 0
        }
        return try await makeChanges(beginningWith: line, of: &lines, in: store)
      }
    } catch let error as LineError {
      throw CommandFailure(
        .usage, "line \(lines.number): \(error); nothing was sent; correct the line and try again")
    }
    return 0
  }

  // MARK: Operations

  @MainActor
  private static func batch(beginningWith first: Range<Int>, of lines: inout LineReader) throws -> WriteBatch {
    var parser = OperationLineParser()
    var batch = WriteBatch()
    var next: Range<Int>? = first
    while true {
      guard let line = next ?? lines.next() else {
        if try lines.fill() { continue } else { return batch }
      }
      next = nil
      guard lines.bytesRead <= maxByteCount else {
        throw CommandFailure(
          .refused, "the lines have more than \(maxByteCount) bytes, the limit of one step; split them")
      }
      if lines.buffer.span.extracting(line).isBlank { continue }
      try parser.parse(lines.buffer.span.extracting(line), into: &batch)
    }
  }

  // MARK: Changes of another store

  @MainActor
  private static func makeChanges(
    beginningWith first: Range<Int>, of lines: inout LineReader, in store: RemoteStore
  ) async throws -> UInt64 {
    var writer = ChangeWriter(store)
    do {
      try writer.add(lines.buffer.span.extracting(first))
      while true {
        guard let line = lines.next() else {
          if !lines.isReady { try await writer.flush() }
          if try lines.fill() { continue } else { break }
        }
        if lines.buffer.span.extracting(line).isBlank { continue }
        try writer.add(lines.buffer.span.extracting(line))
        if writer.isFull { try await writer.flush() }
      }
      guard !writer.isInsideCommit else { throw LineError("the rest of its commit is missing") }
      try await writer.flush()
    } catch {
      // What is complete is made, unless that is what failed.
      if !(error is LarderError) { try await writer.flush() }
      throw failure(error, at: lines.number, madeRevision: writer.madeRevision)
    }
    return writer.madeRevision ?? 0
  }

  private static func failure(_ error: any Error, at line: Int, madeRevision: UInt64?) -> CommandFailure {
    let made = madeRevision.map { "the changes up to revision \($0) were made; to continue, watch from \($0 + 1)" }
    let progress = made ?? "no changes were made"
    switch error {
    case let error as LineError: return CommandFailure(.usage, "line \(line): \(error); \(progress)")
    case is CancellationError: return CommandFailure(.unreachable, "interrupted; \(progress)")
    case let error as LarderError:
      let failure = CommandFailure(error)
      return CommandFailure(failure.status, "\(failure.message); \(progress)")
    case let error as CommandFailure: return CommandFailure(error.status, "\(error.message); \(progress)")
    default: return CommandFailure(.usage, "\(error); \(progress)")
    }
  }
}
