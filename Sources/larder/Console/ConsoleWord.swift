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
      lines += group.subcommands.map { line($0._commandName, $0.configuration.abstract) }
    }
    lines += [
      "Console",
      line("help COMMAND", "Explains a command; so does COMMAND ?"),
      line("format table|json", "How results are shown."),
      line("quit", "Leaves; so does Ctrl-D."),
      "",
      "Tab completes commands, options, stores, keys and files; Ctrl-C stops what is under way.",
      "Words are quoted as in a shell: 'two words', \"it's one\", two\\ words.",
      "A line that begins with a space is not kept in the history.",
    ]
    return lines.map { VisibleText.cut($0, to: Terminal.width) }.joined(separator: "\n")
  }

  private static func line(_ name: String, _ what: String) -> String {
    "  \(name)\(String(repeating: " ", count: max(2, 20 - name.count)))\(what)"
  }
}
