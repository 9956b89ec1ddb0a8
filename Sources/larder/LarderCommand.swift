import ArgumentParser
import Basics
import Glibc
import Platform

/// The command line. What it takes and prints and its exit status are a contract: scripts depend on them.
@main
struct LarderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder",
    abstract: "Works with the stores of a Larder server.",
    discussion: """
      A KEY is 1 to 4096 bytes of UTF-8. Put -- before a KEY or VALUE that begins with a dash.

      Errors go to standard error, in one line. The exit status says how it went:
        0  done
        1  not found
        2  usage: the command line or the input is not right
        3  refused by the server
        4  can't connect, or timed out
        5  damaged: files are not what was written

      Without a COMMAND, on a terminal, a console takes commands until 'quit', and keeps a history in \
      ${XDG_STATE_HOME:-~/.local/state}/larder. Elsewhere it is a usage error: commands are not read from standard input.

      For completions in your shell: larder --generate-completion-script bash (or zsh, or fish)

      Example: larder --server unix:/run/larder.sock put items apple red
      """,
    version: softwareVersion,
    groupedSubcommands: [
      CommandGroup(
        name: "Server",
        subcommands: [Ping.self, Stats.self, Top.self, SlowLog.self, Stores.self, Create.self, Drop.self]),
      CommandGroup(
        name: "Entries",
        subcommands: [Put.self, Get.self, GetMany.self, Delete.self, Count.self, Page.self, Watch.self]),
      CommandGroup(name: "Whole stores", subcommands: [Load.self, Dump.self, Backup.self, Restore.self]),
      CommandGroup(name: "Offline", subcommands: [Verify.self, Check.self]),
    ])

  @OptionGroup var connection: ConnectionOptions

  /// Without a command: a console for a person. Where nobody could type, there is nothing to do, and the help says what there is.
  func run() async throws {
    if ConsoleSession.current != nil { throw CommandFailure(.usage, "a command is missing; 'help' lists the commands") }
    guard Console.isPossible else {
      Self.logHelp()
      throw ExitCode(ExitStatus.usage.rawValue)
    }
    let session = try ConsoleSession(try connection.address(), timeout: connection.patience)
    try await Self.converse(session)
  }

  @MainActor
  private static func converse(_ session: ConsoleSession) async throws {
    var console = try Console(session)
    await console.run()
  }

  static func main() async {
    // A reader that goes away is told by EPIPE, and is no accident.
    signal(SIGPIPE, SIG_IGN)
    do { try checkEncoding() } catch { Glibc.exit(report(error).rawValue) }
    Glibc.exit(await status(of: nil).rawValue)
  }

  /// Runs a command.
  /// - Parameter words: nil for the process's arguments.
  static func status(of words: [String]?) async -> ExitStatus {
    do {
      var command = try await asyncParseAsRoot(words)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      return .done
    } catch {
      return report(error)
    }
  }
}
