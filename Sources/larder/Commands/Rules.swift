import ArgumentParser
import Documents
import Larder
import Platform
import Wire

/// The command `larder rules`.
struct RulesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rules", abstract: "Answers questions about access rules.", subcommands: [RulesCheck.self])
}

struct RulesCheck: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "check", abstract: "Shows whether a client may do something, and which rule says so.",
    discussion: """
      A CLIENT is a principal, the owner of a certificate or a token (web.example or principal:web.example), a user of \
      this machine with its groups (user:ann), or any other client (anonymous). The OPERATION is one of \
      the protocol's, such as get, put, find, store-create or stats. The answer is that of the running server: for each \
      socket that the client can connect to, whether it may, and the first rule in larderd's setting access that permits \
      it. Without a KEY, the operation is about all of the store. The exit status is 3 if the client may not do it on any \
      socket.

      Prints a table on a terminal, otherwise one line of JSON for each socket: \
      {"listener","permitted","rule","number"}, the last two if a rule permits it.

      Example: larder rules check web.example put carts eu:4711
      Example: larder rules check user:ann stats
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup var outputOptions: OutputOptions

  @Argument(help: "The client: NAME, principal:NAME, user:NAME or anonymous.")
  private var client: String

  @Argument(help: "The operation.", completion: .list(Wire.Operation.allCases.map(\.name)))
  private var operation: String

  @Argument(help: "The store that the operation is on.")
  private var store: String?

  @Argument(help: "A key, or what all keys begin with.")
  private var key: String?

  func run() async throws {
    var question = try Self.describe(client)
    question["operation"] = .string(operation)
    if let store { question["store"] = .string(store) }
    if let key { question["key"] = .string(key) }
    let decisions = try await connection.client().checkRules(question)
    var output = Output()
    if Output.showsRows {
      var table = Table("SOCKET", "PERMITTED", "RULE")
      for decision in decisions {
        let rule = decision["rule"]?.string.map { "\(decision["number"]?.integer ?? 0). \($0)" }
        table.add(decision["listener"]?.string ?? "", decision["permitted"] == true ? "yes" : "no", rule ?? "-")
      }
      try output.write(table, orIfEmpty: "The server has no socket that this client can connect to.")
    } else {
      for decision in decisions {
        output.bytes += decision.encoded()
        output.bytes.append("\n")
      }
      try output.flush()
    }
    if !decisions.contains(where: { $0["permitted"] == true }) { throw ExitCode(ExitStatus.refused.rawValue) }
  }

  /// Returns what is known of a client, as the server wants to know it.
  private static func describe(_ client: String) throws -> JSONValue {
    if client == "anonymous" { return [:] }
    guard client.hasPrefix("user:") else {
      return ["principal": .string(client.hasPrefix("principal:") ? String(client.dropFirst(10)) : client)]
    }
    let name = String(client.dropFirst(5))
    guard let user = userID(name) else {
      throw CommandFailure(.usage, "there is no user '\(name)' on this machine; \"getent passwd\" lists them")
    }
    return ["user": .integer(Int64(user)), "groups": .array(groups(ofUser: user).map { .integer(Int64($0)) })]
  }
}
