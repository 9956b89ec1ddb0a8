import ArgumentParser
import Documents

/// The family `larder json`.
struct JSONCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "json",
    abstract: "Works with files of JSON.",
    subcommands: [JSONCheck.self])

  func run() throws {
    throw CommandFailure(.usage, "a command is missing; see 'larder json --help'")
  }
}

struct JSONCheck: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Checks that a file is JSON.",
    discussion: """
      Doesn't need a server. If the file is not JSON, prints FILE:LINE:COLUMN, what was expected there, and the line \
      with a caret under the place, and the exit status is 5. Columns count bytes, from 1. If the file is JSON, says so \
      on a terminal, and otherwise prints nothing.

      With --lines, each line is a JSON value of its own; blank lines are skipped. All invalid lines are counted, and \
      the first 10 are printed.

      JSON is that of RFC 8259 in UTF-8: no comments, no trailing commas, no byte order mark. Arrays and objects can be \
      nested 512 levels deep. A file is read into memory as a whole and can have up to 2 GiB; with --lines, a line can \
      have up to 384 MiB, and the file any size.

      Example: larder json check package.json
      Example: curl -s https://example.com/events.jsonl | larder json check --lines -
      """)

  private static let maxSize = 2 << 30
  private static let maxPrintedLines = 10

  @Flag(help: "Check each line as a JSON value of its own.")
  private var lines = false

  @Argument(help: "A file, or - for standard input.", completion: .file())
  private var file: String

  func run() throws {
    let input = try InputFile(path: file)
    if lines { try checkLines(input) } else { try checkWhole(input) }
  }

  /// The name of the file in the output.
  private var name: String { file == "-" ? "standard input" : file }

  private func checkWhole(_ input: consuming InputFile) throws {
    let text = try input.readAll(
      limit: Self.maxSize,
      orThrow: CommandFailure(
        .usage, "\(name) is longer than 2 GiB; use --lines if each line is a JSON value of its own"))
    var output = Output()
    do {
      try JSON.validate(text.span)
    } catch {
      let lineStart = error.offset - (error.column - 1)
      var line = text[lineStart...].prefix { $0 != UInt8(ascii: "\n") }
      if line.last == UInt8(ascii: "\r"), error.offset < line.endIndex { line.removeLast() }
      report(error, line: error.line, line, in: &output.bytes)
      try output.flush()
      let advice = error.expected == .end ? ", or use --lines if each line is a value of its own" : " and check again"
      throw CommandFailure(.damaged, "\(name) is not JSON; correct line \(error.line)\(advice)")
    }
    if Output.isTerminal { try output.writeLine("\(name) is JSON (\(HumanReadable.bytes(UInt64(text.count)))).") }
  }

  private func checkLines(_ input: consuming InputFile) throws {
    var progress = Progress("lines", total: input.size)
    var reader = LineReader(input)
    var output = Output()
    var (count, invalidCount) = (0, 0)
    do {
      while true {
        guard let line = reader.next() else {
          if try reader.fill() { continue } else { break }
        }
        let text = reader.buffer.span.extracting(line)
        if text.isBlank { continue }
        count += 1
        do {
          try JSON.validate(text)
        } catch {
          invalidCount += 1
          if invalidCount > Self.maxPrintedLines { continue }
          progress.clear()
          report(error, line: reader.number, reader.buffer[line], in: &output.bytes)
          try output.flush()
        }
        progress.show(count, done: reader.bytesRead)
      }
    } catch let error as LineError {
      progress.clear()
      throw CommandFailure(.usage, "line \(reader.number) of \(name) can't be checked: \(error)")
    }
    progress.clear()
    let lines = "\(HumanReadable.number(count)) \(count == 1 ? "line" : "lines")"
    guard invalidCount > 0 else {
      if Output.isTerminal { try output.writeLine("\(name) is JSON Lines (\(lines)).") }
      return
    }
    if invalidCount > Self.maxPrintedLines {
      let rest = invalidCount - Self.maxPrintedLines
      try output.writeLine("… and \(HumanReadable.number(rest)) more \(rest == 1 ? "line" : "lines")")
    }
    let amount = invalidCount == 1 ? "1 of \(lines) is" : "\(HumanReadable.number(invalidCount)) of \(lines) are"
    throw CommandFailure(
      .damaged, "\(name): \(amount) not JSON; correct \(invalidCount == 1 ? "it" : "them") and check again")
  }

  /// Appends a place and what was expected there, in the form that editors understand, and the line.
  private func report(_ error: JSONError, line number: Int, _ line: ArraySlice<UInt8>, in output: inout [UInt8]) {
    output.append(contentsOf: "\(name):\(number):\(error.column): \(error.reason)\n".utf8)
    let width = Output.isTerminal ? Terminal.width : 100
    let excerpt = LineExcerpt(line, at: line.startIndex + error.column - 1, width: width)
    output.append(contentsOf: excerpt.text.utf8)
  }
}
