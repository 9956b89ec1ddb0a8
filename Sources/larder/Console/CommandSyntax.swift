import ArgumentParser
import Foundation

/// What a command takes, as the parser itself tells it in JSON. Only what a console needs is read.
struct CommandSyntax: Decodable {
  let commandName: String
  let subcommands: [CommandSyntax]?
  let arguments: [Argument]?

  struct Argument: Decodable {
    let kind: Kind
    let isRepeating: Bool
    let names: [Name]?
    let valueName: String
    let completionKind: Values?

    enum Kind: String, Decodable { case positional, option, flag }

    /// Such as `--limit` and `-h`.
    var options: [String] { (names ?? []).map { ($0.kind == .short ? "-" : "--") + $0.name } }
  }

  struct Name: Decodable {
    let kind: Kind
    let name: String

    enum Kind: String, Decodable { case long, short, longWithSingleDash }
  }

  /// What is offered for an argument. Names of stores are known by the argument's name.
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

  /// All of `larder`, `help` included.
  static let larder: CommandSyntax = {
    struct Tool: Decodable { let command: CommandSyntax }
    do { return try JSONDecoder().decode(Tool.self, from: Data(LarderCommand._dumpHelp().utf8)).command } catch {
      preconditionFailure("the parser describes its commands in another way: \(error)")
    }
  }()

  var commands: [CommandSyntax] { subcommands ?? [] }

  func command(_ name: String) -> CommandSyntax? { commands.first { $0.commandName == name } }

  func option(_ name: String) -> Argument? { (arguments ?? []).first { $0.options.contains(name) } }

  var positionals: [Argument] { (arguments ?? []).filter { $0.kind == .positional } }
}

/// Where a command line stands after some of its words. The rule of the command line in one place: a word that begins with a dash is an
/// option, unless it follows `--` or is the value of the option before it.
struct CommandLinePosition {
  private(set) var command = CommandSyntax.larder
  /// The arguments so far, without options and their values.
  private(set) var arguments: [String] = []
  /// The option whose value comes next.
  private(set) var pendingOption: CommandSyntax.Argument?
  /// Whether `--` has not come yet.
  private(set) var acceptsOptions = true

  init(after words: some Sequence<String>) {
    for word in words { advance(past: word) }
  }

  /// What shows the help of the command.
  var helpCommand: String {
    let larder = CommandSyntax.larder.commandName
    return command.commandName == larder ? "\(larder) --help" : "\(larder) \(command.commandName) --help"
  }

  /// Whether a word is an option, known or not, if it comes next.
  func isOption(_ word: String) -> Bool {
    pendingOption == nil && acceptsOptions && word.hasPrefix("-") && word.count > 1 && word != "--"
  }

  mutating func advance(past word: String) {
    if pendingOption.take() != nil { return }
    if isOption(word) {
      if let option = option(word), option.kind == .option { pendingOption = option }
    } else if acceptsOptions, word == "--" {
      acceptsOptions = false
    } else if let subcommand = command.command(word) {
      command = subcommand
    } else {
      arguments.append(word)
    }
  }

  /// The command's option with this name, or the one that any command accepts.
  private func option(_ name: String) -> CommandSyntax.Argument? {
    command.option(name) ?? CommandSyntax.larder.option(name)
  }

  /// The options that the parser answers itself instead of running a command.
  private static let builtInOptions: Set<String> = [
    "-h", "-help", "--help", "--help-hidden", "--version", "--experimental-dump-help", "--generate-completion-script",
    "---completion",
  ]

  /// Returns the option that makes a command line invalid although the parser answered one of its built-in options.
  ///
  /// The parser finds these options anywhere, even where a key or value was meant, as in `put STORE KEY -h`. They are valid only before
  /// the command's arguments. Returns nil if the first of them is valid.
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
