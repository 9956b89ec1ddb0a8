import Platform

/// Asks the person at the terminal before a command does what can't be undone.
enum Confirmation {
  /// A Boolean value that indicates whether there is a person at the terminal who can answer.
  @MainActor
  static var isPossible: Bool { InputFile().isTerminal && ConsoleSession.current?.ownsInput != true }

  /// Asks a question.
  /// - Throws: `CommandFailure` unless the answer is yes, and if there is no terminal.
  @MainActor
  static func require(_ question: String) throws {
    let input = InputFile()
    guard isPossible else {
      throw CommandFailure(.usage, "\(question) Nothing was done; add --yes to confirm")
    }
    Terminal.write("\(EscapedText.line(question)) [y/N] ", to: 2)
    var lines = LineReader(input, chunk: 256)
    var range = lines.next()
    while range == nil, try lines.fill() { range = lines.next() }
    let answer = range.map { lines.buffer.span.extracting($0).toString().lowercased() }
    if answer == nil { logLine("") }
    guard answer == "y" || answer == "yes" else { throw CommandFailure(.usage, "not confirmed; nothing was done") }
  }
}
