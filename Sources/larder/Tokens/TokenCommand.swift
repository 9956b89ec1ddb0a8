import ArgumentParser
import Glibc
import Platform
import Tokens

/// The command `larder token`, which changes a server's file of tokens. Only `uses` needs the server.
struct TokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token", abstract: "Creates, lists or revokes access tokens.",
    discussion: """
      A token proves who a client is: access rules call its owner principal:NAME. Run this on the server's machine, and \
      reload larderd after each change. The file has only digests of tokens, so a lost token can't be restored: revoke it \
      and create another one.
      """,
    subcommands: [TokenCreate.self, TokenList.self, TokenRevoke.self, TokenUses.self])
}

/// The file that the commands change.
struct TokenFileOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The file that larderd's setting tokens names.", valueName: "path"), completion: .file())
  var file = "/etc/larder/tokens"

  func read() throws -> TokenFile {
    guard unsafe access(file, F_OK) == 0 || errno != ENOENT else { return TokenFile() }
    let bytes: [UInt8]
    do { bytes = try readFile(file, maxByteCount: 64 << 20, trusting: .writableByOwner) } catch {
      throw CommandFailure(.usage, "\(file): \(error.reason)")
    }
    do { return try TokenFile(bytes, from: file) } catch { throw CommandFailure(.damaged, error.description) }
  }

  func write(_ tokens: TokenFile) throws {
    do throws(SystemError) { try replaceFile(file, with: tokens.bytes) } catch {
      throw CommandFailure(.usage, "\(file): can't be written: \(error.reason)")
    }
  }
}

struct TokenCreate: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Creates a token and prints it, once.",
    discussion: "Example: larder token create web --days 90 > web.token")

  @Argument(help: "The principal that the token is for: 1 to 128 letters, digits and . _ - : / @.")
  private var name: String

  @Option(help: "The number of days after which it expires.")
  private var days = 365

  @OptionGroup private var options: TokenFileOptions

  func validate() throws {
    guard TokenRecord.isName(name) else {
      throw ValidationError("'\(name)' is not a name of 1 to 128 letters, digits and . _ - : / @")
    }
    guard (1...36_500).contains(days) else { throw ValidationError("--days must be 1 to 36500") }
  }

  func run() throws {
    var tokens = try options.read()
    let token = AccessToken()
    let now = Int64(time(nil))
    let record = TokenRecord(name: name, digest: token.digest, created: now, expiry: now + Int64(days) * 86_400)
    guard tokens.add(record) else {
      throw CommandFailure(.refused, "'\(name)' has a token already; revoke it first, or use another name")
    }
    // Printed first, because a token that nobody has seen is lost.
    var output = Output()
    do { try output.writeLine(token.text) } catch is OutputClosed {
      throw CommandFailure(.usage, "nobody reads the token from standard output; nothing was changed")
    }
    try options.write(tokens)
    logLine("larder: this is shown only once; reload larderd to accept it")
  }
}

struct TokenList: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the names of tokens, when they were created and when they expire.")

  @OptionGroup private var options: TokenFileOptions

  func run() throws {
    let now = Int64(time(nil))
    let rows = try options.read().records.map { record in
      let expiry = record.expiry.map { Self.date($0) + ($0 <= now ? " (expired)" : "") } ?? "never"
      return [record.name, Self.date(record.created), expiry]
    }
    let table = [["NAME", "CREATED", "EXPIRES"]] + rows
    let widths = (0..<2).map { column in table.map { $0[column].utf8.count }.max() ?? 0 }
    var output = Output()
    for row in table {
      let cells = zip(row, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.utf8.count)) }
      output.bytes += "\((cells + [row[2]]).joined(separator: "  "))\n".utf8
    }
    try output.flush()
  }

  /// Returns the date of a time in seconds since 1970, in UTC: `2026-11-27`.
  private static func date(_ seconds: Int64) -> String {
    var (time, parts) = (time_t(seconds), unsafe tm())
    _ = unsafe gmtime_r(&time, &parts)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return unsafe "\(parts.tm_year + 1_900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
  }
}

struct TokenRevoke: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Revokes the token of a principal.",
    discussion: "Once larderd has reloaded, connections with the token lose its rights.")

  @Argument(help: "The principal that has the token.")
  private var name: String

  @OptionGroup private var options: TokenFileOptions

  func run() throws {
    var tokens = try options.read()
    guard tokens.remove(name) else { throw CommandFailure(.notFound, "'\(name)' has no token") }
    try options.write(tokens)
    logLine("larder: reload larderd to refuse the token of '\(name)'")
  }
}
