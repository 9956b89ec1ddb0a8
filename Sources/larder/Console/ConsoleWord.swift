import ArgumentParser

/// The commands that only a console has.
enum ConsoleWord: String, CaseIterable {
  case help, format, quit, exit
  case questionMark = "?"

  /// What `help` says.
  static var overview: String {
    var lines: [String] = []
    for group in LarderCommand.configuration.groupedSubcommands {
      lines.append(group.name)
      lines += group.subcommands.flatMap { explanation($0._commandName, $0.configuration.abstract) }
    }
    lines.append("Console")
    lines += explanation("help COMMAND", "Explains a command; so does COMMAND ?")
    lines += explanation("format table|json", "How results are shown.")
    lines += explanation("quit", "Leaves; so does Ctrl-D.")
    lines.append("")
    lines += wrapped("Tab completes commands, options, stores, keys and files; Ctrl-C stops what is under way.")
    lines += wrapped("Words are quoted as in a shell: 'two words', \"it's one\", two\\ words.")
    lines += wrapped("A line that begins with a space is not kept in the history.")
    return lines.joined(separator: "\n")
  }

  private static func explanation(_ name: String, _ what: String) -> [String] {
    let column = 22
    let beginning = "  \(name)"
    return wrapped(
      what, after: beginning + String(repeating: " ", count: max(2, column - beginning.count)), indent: column)
  }

  /// Breaks a text between words where the terminal ends, and indents what follows.
  private static func wrapped(_ text: String, after beginning: String = "", indent: Int = 0) -> [String] {
    var lines = [beginning]
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
