import ArgumentParser
import Basics
import Documents
import Glibc
import Larder

struct TokenUses: AsyncParsableCommand, OutputCommand {
  static let configuration = CommandConfiguration(
    commandName: "uses", abstract: "Shows when each token was last used, as the running server knows.",
    discussion: """
      The server forgets it when it stops. Prints a table on a terminal, otherwise one line of JSON for each token: \
      {"name","created","expires","lastUsed"}, in seconds since 1970, the last two if known.

      Example: larder token uses
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup var outputOptions: OutputOptions

  func run() async throws {
    let tokens = try await connection.client().tokens()
    let now = Int64(time(nil))
    var output = Output()
    guard Output.showsRows else {
      for token in tokens {
        output.bytes += token.encoded()
        output.bytes.append("\n")
      }
      return try output.flush()
    }
    func ago(_ time: Int64?) -> String? {
      time.map { HumanReadable.time(seconds: UInt64(now - min(now, max(0, $0)))) + " ago" }
    }
    func ahead(_ time: Int64?) -> String? {
      time.map { $0 <= now ? "expired" : "in " + HumanReadable.time(seconds: UInt64($0 - now)) }
    }
    var table = Table("NAME", "CREATED", "EXPIRES", "LAST USED")
    for token in tokens {
      table.add(
        token["name"]?.string ?? "", ago(token["created"]?.integer) ?? "-", ahead(token["expires"]?.integer) ?? "never",
        ago(token["lastUsed"]?.integer) ?? "-")
    }
    try output.write(table, orIfEmpty: "The server accepts no tokens.")
  }
}
