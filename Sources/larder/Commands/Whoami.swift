import ArgumentParser
import Larder
import Platform

struct Whoami: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows who you are to the server, and what you may do.",
    discussion: """
      The rights are those that larderd's access rules grant to your user, certificate or token on the socket that you \
      are connected to.

      Prints lines of text on a terminal, otherwise one line of JSON: {"principal","proof","user","rights"}, each if \
      known; "rights" has {"right","store","keyPrefix"}, without "store" for the server and all stores.

      Example: larder whoami
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup var outputOptions: OutputOptions

  func run() async throws {
    let identity = try await connection.client().identity()
    var output = Output()
    guard Output.showsRows else {
      output.bytes += identity.json.encoded()
      output.bytes.append("\n")
      return try output.flush()
    }
    if Output.showsTables { try output.writeLine(Self.name(of: identity)) }
    var table = Table("RIGHT", "STORE", "KEYS")
    for right in identity.rights {
      table.add(right.level.rawValue, right.store ?? "all, and the server", right.keyPrefix.map { "\($0)…" } ?? "all")
    }
    try output.write(table, orIfEmpty: "You have no rights.")
  }

  private static func name(of identity: ClientIdentity) -> String {
    let user = identity.user.map { id in userName(ofID: id).map { "user \($0) (uid \(id))" } ?? "uid \(id)" }
    guard let principal = identity.principal, let proof = identity.proof else { return user ?? "an anonymous client" }
    return "principal \(principal), by its \(proof)" + (user.map { ", \($0)" } ?? "")
  }
}
