import ArgumentParser
import FoundationEssentials

/// The syntax of a command, decoded from the JSON in which the argument parser describes it. Only what the console
/// needs.
struct CommandSyntax: Decodable {
  let commandName: String
  private let subcommands: [CommandSyntax]?
  private let arguments: [Argument]?

  struct Argument: Decodable {
    let kind: Kind
    let isRepeating: Bool
    private let names: [Name]?
    let valueName: String
    let completionKind: Values?

    enum Kind: String, Decodable { case positional, option, flag }

    /// The option's names with their dashes, such as `--limit` and `-h`.
    var options: [String] { (names ?? []).map { ($0.kind == .short ? "-" : "--") + $0.name } }
  }

  private struct Name: Decodable {
    let kind: Kind
    let name: String

    enum Kind: String, Decodable { case long, short, longWithSingleDash }
  }

  /// The values that completion offers for an argument. The names of stores are `other`; the argument's name identifies
  /// them.
  enum Values: Decodable {
    case list([String])
    case file, directory, other

    private enum CodingKeys: String, CodingKey { case list, file, directory }
    private struct Choices: Decodable { let values: [String] }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      if container.contains(.list) {
        self = .list(try container.decode(Choices.self, forKey: .list).values)
      } else {
        self = container.contains(.file) ? .file : container.contains(.directory) ? .directory : .other
      }
    }
  }

  /// The syntax of `larder` and all its commands, including `help`.
  static let larder: CommandSyntax = {
    struct Tool: Decodable { let command: CommandSyntax }
    do { return try JSONDecoder().decode(Tool.self, from: Data(LarderCommand._dumpHelp().utf8)).command } catch {
      preconditionFailure("the argument parser's description of the commands has another format: \(error)")
    }
  }()

  var commands: [CommandSyntax] { subcommands ?? [] }

  func command(_ name: String) -> CommandSyntax? { commands.first { $0.commandName == name } }

  /// The names of all options with their dashes.
  var options: [String] { (arguments ?? []).flatMap(\.options) }

  func option(_ name: String) -> Argument? { (arguments ?? []).first { $0.options.contains(name) } }

  var positionals: [Argument] { (arguments ?? []).filter { $0.kind == .positional } }
}

/// The position after some words of a command line. It implements the rule for dashes: a word that begins with a dash
/// is an option, unless it follows `--` or is the value of the option before it.
struct CommandLinePosition {
  private(set) var command = CommandSyntax.larder
  /// The names that lead to the command, from `larder`.
  private var path = [CommandSyntax.larder.commandName]
  /// The arguments so far, without options and their values.
  private(set) var arguments: [String] = []
  /// The option whose value comes next.
  private(set) var pendingOption: CommandSyntax.Argument?
  /// A Boolean value that indicates whether `--` has not come yet.
  private(set) var acceptsOptions = true

  init(after words: some Sequence<String>) {
    for word in words { advance(past: word) }
  }

  /// The command that shows the help of this position's command.
  var helpCommand: String { (path + ["--help"]).joined(separator: " ") }

  /// The first argument with this name, if there is one.
  func argument(named name: String) -> String? {
    zip(command.positionals, arguments).first { $0.0.valueName == name }?.1
  }

  /// Returns whether the word would be an option here, known or not.
  private func isOption(_ word: String) -> Bool {
    pendingOption == nil && acceptsOptions && word.hasPrefix("-") && word.count > 1 && word != "--"
  }

  private mutating func advance(past word: String) {
    if pendingOption.take() != nil { return }
    if isOption(word) {
      if let option = option(word), option.kind == .option { pendingOption = option }
    } else if acceptsOptions, word == "--" {
      acceptsOptions = false
    } else if let subcommand = command.command(word) {
      command = subcommand
      path.append(subcommand.commandName)
    } else {
      arguments.append(word)
    }
  }

  /// Returns the command's option with this name, or the one that every command accepts.
  private func option(_ name: String) -> CommandSyntax.Argument? {
    command.option(name) ?? CommandSyntax.larder.option(name)
  }

  /// The positional argument that the next word would be, if the command takes another one.
  var nextArgument: CommandSyntax.Argument? {
    let (positionals, count) = (command.positionals, arguments.count)
    return count < positionals.count ? positionals[count] : positionals.last.flatMap { $0.isRepeating ? $0 : nil }
  }

  // MARK: Descending fields

  /// The name of arguments that are fields, which can have a dash for descending order.
  static let fieldArgumentName = "field"

  /// Returns a command line that the parser reads as it was meant, if an argument is a descending field, such as `-age`:
  /// all arguments are after `--`. Returns other command lines as they are.
  static func separatingFields(in words: [String]) -> [String] {
    // Only these commands take fields. Reading the syntax of all commands takes longer than most commands.
    guard words.contains(IndexCommand._commandName),
      words.contains(where: { $0.hasPrefix("-") && !$0.hasPrefix("--") && $0.count > 1 })
    else { return words }
    var position = CommandLinePosition(after: [])
    var (options, arguments): ([String], [String]) = ([], [])
    var hasDescendingField = false
    for word in words {
      let isField = position.isDescendingField(word)
      if isField { hasDescendingField = true }
      let isSubcommand = position.pendingOption == nil && position.command.command(word) != nil
      let isOption = position.pendingOption != nil || position.isOption(word) || isSubcommand
      let isSeparator = position.pendingOption == nil && position.acceptsOptions && word == "--"
      if isField { position.arguments.append(word) } else { position.advance(past: word) }
      if isSeparator { continue }
      if isOption && !isField { options.append(word) } else { arguments.append(word) }
    }
    return hasDescendingField ? options + ["--"] + arguments : words
  }

  private func isDescendingField(_ word: String) -> Bool {
    isOption(word) && !word.hasPrefix("--") && option(word) == nil && !Self.builtInOptions.contains(word)
      && nextArgument?.valueName == Self.fieldArgumentName
  }

  // MARK: Separators before a command

  /// Returns a command line without a `--` that precedes the name of a command, such as `larder -- ping`. It ends the
  /// options before it; those of the command can follow.
  static func droppingSeparators(in words: [String]) -> [String] {
    // After a command without subcommands, such as `put`, there is none to drop. That is known without the syntax of
    // all commands, which takes long to read.
    let commands = LarderCommand.configuration.subcommands.filter { $0.configuration.subcommands.isEmpty }
    guard let first = words.firstIndex(of: "--"),
      !words[..<first].contains(where: { word in commands.contains { $0._commandName == word } })
    else { return words }
    var position = CommandLinePosition(after: [])
    var kept: [String] = []
    for (index, word) in words.enumerated() {
      let isSeparator = position.pendingOption == nil && position.acceptsOptions && word == "--"
      if isSeparator, index + 1 < words.count, position.command.command(words[index + 1]) != nil { continue }
      position.advance(past: word)
      kept.append(word)
    }
    return kept
  }

  // MARK: Unknown commands

  /// Returns the word where the name of a command was meant but none is, and the words before it.
  static func unknownCommand(in words: [String]) -> (word: String, before: ArraySlice<String>)? {
    var position = CommandLinePosition(after: [])
    for (index, word) in words.enumerated() where !position.command.commands.isEmpty {
      let isName = position.pendingOption == nil && !position.isOption(word) && word != "--"
      if isName, position.command.command(word) == nil { return (word, words[..<index]) }
      position.advance(past: word)
    }
    return nil
  }

  /// Returns the first word after `help` that is no command there, and the words before it without `help`; nil for other
  /// command lines. The parser would show the help of what precedes the word.
  static func unknownHelpTopic(in words: [String]) -> (word: String, before: ArraySlice<String>)? {
    guard let index = words.firstIndex(where: { !$0.hasPrefix("-") }), words[index] == "help" else { return nil }
    let topics = words[(index + 1)...].filter { !$0.hasPrefix("-") }
    var command = CommandSyntax.larder
    for (number, topic) in topics.enumerated() {
      guard let next = command.command(topic) else { return (topic, topics[..<number]) }
      command = next
    }
    return nil
  }

  /// Returns the first word that is meant as an option, although its command has none of that name; nil if there is none.
  static func unknownOption(in words: [String]) -> String? {
    var position = CommandLinePosition(after: [])
    for word in words {
      let name = String(word.prefix { $0 != "=" })
      if position.isOption(word), name.hasPrefix("--"), position.option(name) == nil, !builtInOptions.contains(name) {
        return word
      }
      position.advance(past: word)
    }
    return nil
  }

  // MARK: Long command lines

  /// The number of words above which the parser, whose time is quadratic in their number, would take noticeably long.
  private static let maxParsedWordCount = 200

  /// Returns a command line without most of its keys, and these keys, if it is long.
  ///
  /// The first key stays, and so do invalid ones, which the parser reports. Complexity: O(n).
  static func separatingKeys(in words: [String]) -> (words: [String], keys: [String]) {
    guard words.count > maxParsedWordCount else { return (words, []) }
    var position = CommandLinePosition(after: [])
    var (kept, keys): ([String], [String]) = ([], [])
    for word in words {
      let isFollowingKey = position.isKey(word) && position.arguments.count >= position.command.positionals.count
      if isFollowingKey, KeyLength.isValid(word.utf8.count) {
        keys.append(word)
      } else {
        position.advance(past: word)
        kept.append(word)
      }
    }
    return (kept, keys)
  }

  private func isKey(_ word: String) -> Bool {
    pendingOption == nil && !isOption(word) && !(acceptsOptions && word == "--")
      && nextArgument?.valueName == KeysArguments.argumentName
  }

  // MARK: Built-in options

  /// The options that the parser answers itself instead of running a command.
  private static let builtInOptions: Set<String> = [
    "-h", "-help", "--help", "--help-hidden", "--version", "--experimental-dump-help", "--generate-completion-script",
    "---completion",
  ]

  /// Returns the option that makes a command line invalid although the parser answered one of its built-in options.
  ///
  /// The parser finds these options anywhere, even where a key or value was meant, as in `put STORE KEY -h`. They are
  /// valid only before the command's arguments. Returns nil if the first of them is valid.
  static func misplacedOption(in words: [String]) -> String? {
    var position = CommandLinePosition(after: [])
    var misplacedValue: String?
    for word in words {
      let name = String(word.prefix { $0 != "=" })
      let isBuiltIn = builtInOptions.contains(name)
      if position.isOption(word) {
        if isBuiltIn, position.arguments.isEmpty || position.command.commandName == "help" { return nil }
        if isBuiltIn || position.option(name) == nil { return word }
      } else if isBuiltIn, position.pendingOption != nil {
        misplacedValue = word
      }
      position.advance(past: word)
    }
    return misplacedValue
  }
}
