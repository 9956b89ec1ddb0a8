import ArgumentParser
import Larder

struct Load: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes entries from lines of JSON, or from CSV.",
    discussion: """
      The lines are those of 'larder dump' or, with --key, any JSON objects; then the whole line is the value. In \
      lines of 'dump', a "value" that is a string stands for its text, and any other JSON is stored unchanged. \
      Revisions are ignored. Entries expire at "expiresAtMilliseconds" (since 1970, by this machine's clock) or, without \
      it, "expiresInMilliseconds" from now. If several lines have the same key, the last one wins. Blank lines are skipped.

      With --format csv, the first line has the names of the fields: those of 'larder dump --format csv' or, with \
      --key, any names; then each row becomes a JSON object. In it, a field that is a number, true or false in JSON is \
      one, an empty field is left out, and any other is a string.

      An invalid line stops the command with exit status 2; the lines before it have been loaded. Ctrl-C and errors, \
      too, leave loaded lines in the store, and larder prints the number for --resume, with which the same command \
      continues. On a terminal, larder shows a progress bar.

      Example: larder load items items.jsonl
      Example: zcat users.jsonl.gz | larder load users - --key email
      Example: larder load users users.csv --format csv --key email
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var store: StoreArgument

  enum Format: String, CaseIterable, ExpressibleByArgument { case json, csv }

  @Argument(help: "A file, or - for standard input.", completion: .file())
  private var file: String

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The member or field that contains the key: a string, or an integer, whose decimal digits become the key.",
      valueName: "field"))
  private var key: String?

  @Option(parsing: .unconditional, help: "The format of the input: json (lines of JSON) or csv.")
  private var format: Format = .json

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Skip this many lines, which an interrupted load of the same input has loaded.", valueName: "lines"),
    transform: WholeNumber.parse)
  private var resume: UInt64 = 0

  func run() async throws {
    let store = try connection.client().store(store.name)
    // Fails early, before any input is read, if there is no such store.
    _ = try await store.count()
    let (file, key, format, resume) = (file, key, format, Int(clamping: resume))
    try await StopRequest.observe {
      let input = try InputFile(path: file)
      switch format {
      case .json: try await Self.load(input, EntryLineParser(keyField: key), skipping: resume, into: store)
      case .csv: try await Self.load(input, CSVEntryParser(keyField: key), skipping: resume, into: store)
      }
    }
  }

  /// Runs on the main thread, which may block on the input while other threads send.
  @MainActor
  private static func load(
    _ input: consuming InputFile, _ initialParser: some EntryParser, skipping skippedCount: Int,
    into store: RemoteStore
  ) async throws {
    var parser = initialParser
    // The last line that ends an entry.
    var loadedLine = 0
    var progress = Progress(total: input.size)
    var lines = LineReader(input)
    var writer = BatchWriter(store, itemNoun: .line)
    do {
      while true {
        guard let line = lines.next() else {
          // If the input is slow, send each line as it arrives.
          if !lines.isReady { try await writer.sendAll() }
          if try lines.fill() { continue } else { break }
        }
        let firstLine = loadedLine + 1
        let isBlank = lines.buffer.span.extracting(line).isBlank && !parser.isInsideEntry
        let isSkipped = isBlank || (lines.number <= skippedCount && !parser.needsNames)
        let write = isSkipped ? nil : try parser.write(of: lines.buffer.span.extracting(line))
        if !parser.isInsideEntry { loadedLine = lines.number }
        guard let write else { continue }
        let partition = BatchWriter.partition(of: write.key)
        let size = write.byteCount
        if writer.isFull(partition, for: size) {
          try await writer.send(partition)
          progress.show(writer.acknowledgedCount, done: lines.bytesRead)
        }
        writer.add(write, byteCount: size, number: firstLine, to: partition)
      }
      if parser.isInsideEntry { throw LineError("the quotes of a field are not closed") }
      try await writer.finish()
    } catch let error as LineError {
      progress.clear()
      try await writer.finish()
      throw CommandFailure(
        .usage,
        "line \(lines.number): \(error); the lines before it are loaded (entries: \(writer.acknowledgedCount)); "
          + "correct the line" + ResumeAdvice.text(after: loadedLine))
    } catch is CancellationError {
      progress.clear()
      try await writer.finish()
      throw CommandFailure(
        .unreachable,
        "interrupted; all lines up to \(loadedLine) are loaded (entries: \(writer.acknowledgedCount))"
          + ResumeAdvice.text(after: max(loadedLine, skippedCount)))
    } catch {
      progress.clear()
      throw error
    }
    guard lines.number >= skippedCount else {
      throw CommandFailure(
        .usage, "the input has only \(lines.number) lines, fewer than --resume skips; nothing was changed")
    }
    progress.finish("loaded", writer.acknowledgedCount, bytes: lines.bytesRead)
  }
}
