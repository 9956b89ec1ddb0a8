import Platform

/// The commands in the lines of a file. Blank lines and lines that begin with `#` are skipped; an open quote, an open
/// bracket of JSON or a backslash at the end continues a command on the next line.
@MainActor
struct Script: ~Copyable {
  private var lines: LineReader
  /// The file's name in messages; nil for standard input.
  private let name: String?
  private let stopsAtFailure: Bool
  /// The first line, if `readFirstLine` has read it.
  private var firstLine: (text: String, number: Int)?

  init(_ input: consuming InputFile, name: String? = nil, stopsAtFailure: Bool = true) {
    lines = LineReader(input)
    self.name = name
    self.stopsAtFailure = stopsAtFailure
  }

  /// Reads the first line, and returns whether there is one.
  mutating func readFirstLine() throws -> Bool {
    firstLine = try nextLine()
    return firstLine != nil
  }

  /// Runs the commands up to the first that fails, or all of them.
  /// - Returns: The status of the first failure, or success.
  mutating func run(_ interpreter: CommandInterpreter) async throws -> ExitStatus {
    var status = ExitStatus.success
    while let (line, number) = try nextLine() {
      guard let first = line.unicodeScalars.first(where: { $0 != " " && $0 != "\t" }), first != "#" else { continue }
      var words = CommandWords(line)
      while words.isUnfinished, let (line, _) = try nextLine() { words.continueLine(line) }
      let command = words
      let result = await ConsoleSession.$place.withValue(place(number)) { await interpreter.execute(command) }
      if status == .success { status = result.status }
      if result.next == .quit || (result.status != .success && stopsAtFailure) { break }
    }
    return status
  }

  private func place(_ number: Int) -> String { (name.map { "\($0), " } ?? "") + "line \(number)" }

  private mutating func nextLine() throws -> (text: String, number: Int)? {
    if let line = firstLine.take() { return line }
    while true {
      guard let range = lines.next() else {
        if try lines.fill() { continue } else { return nil }
      }
      let bytes = lines.buffer.span.extracting(range).toArray()
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw CommandFailure(.usage, "\(place(lines.number)): it is not valid UTF-8")
      }
      return (text, lines.number)
    }
  }
}
