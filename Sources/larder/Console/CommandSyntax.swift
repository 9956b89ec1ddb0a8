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
