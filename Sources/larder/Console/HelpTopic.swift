import Basics

/// What `larder help` explains.
enum HelpTopic {
  /// Checks that the words after `help` name a command.
  /// - Parameter words: A command line.
  static func check(_ words: [String]) throws(CommandFailure) {
    guard words.first == "help" else { return }
    var (command, path) = (CommandSyntax.larder, ["larder"])
    for word in words.dropFirst() where !word.hasPrefix("-") {
      guard let next = command.command(word) else {
        let names = command.commands.map(\.commandName)
        let suggestion = SpellingSuggestion.nearest(to: word, of: names).map { "did you mean '\($0)'? " } ?? ""
        throw CommandFailure(
          .usage, "'\(path.joined(separator: " "))' has no command '\(word)'; \(suggestion)see '\(path[0]) --help'")
      }
      command = next
      path.append(word)
    }
  }
}
