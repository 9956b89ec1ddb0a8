import ArgumentParser

/// The commands that exist only in the console.
enum ConsoleCommand: String, CaseIterable {
  case help, format, quit, exit
  case questionMark = "?"
  case read = ".read"

  /// The text that `help` prints.
  static var overview: String {
    var lines: [String] = []
    for group in LarderCommand.configuration.groupedSubcommands {
      lines.append(group.name)
      lines += group.subcommands.flatMap { description($0._commandName, $0.configuration.abstract) }
    }
    lines.append("Console")
    lines += description("help COMMAND", "Describes a command. COMMAND ? does the same.")
    lines += description("format FORMAT", "Sets the format of results: table, json or csv.")
    lines += description(".read FILE", "Runs the commands in the lines of a file, up to the first that fails.")
    lines += description("quit", "Quits. Ctrl-D does the same.")
    lines.append("")
    lines += wrapped("Tab completes commands, options, stores, keys, fields and files. Ctrl-C interrupts a command.")
    lines += wrapped("Quote words as in a shell: 'two words', \"it's one\", two\\ words.")
    lines += wrapped("JSON needs no quotes around it: put items apple {\"color\": \"red\"}")
    lines += wrapped(
      "A line with an open quote or bracket of JSON, or with a backslash at its end, continues on the next line.")
    lines += wrapped("Ctrl-Z suspends the console.")
    lines += wrapped("The history omits lines that begin with a space.")
    return lines.joined(separator: "\n")
  }

  private static func description(_ name: String, _ text: String) -> [String] {
    let column = 22
    let start = "  \(name)"
    return wrapped(text, after: start + String(repeating: " ", count: max(2, column - start.count)), indent: column)
  }

  /// Breaks a text into lines that fit the terminal, and indents all but the first.
  private static func wrapped(_ text: String, after start: String = "", indent: Int = 0) -> [String] {
    var lines = [start]
    var isFirst = true
    for word in text.split(separator: " ") {
      if !isFirst, lines[lines.count - 1].count + 1 + word.count > Terminal.width {
        lines.append(String(repeating: " ", count: indent) + word)
      } else {
        lines[lines.count - 1] += (isFirst ? "" : " ") + word
      }
      isFirst = false
    }
    return lines
  }
}
