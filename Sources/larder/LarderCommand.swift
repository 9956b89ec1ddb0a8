import ArgumentParser
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

      For completions in your shell: larder --generate-completion-script bash (or zsh, or fish)

      Example: larder --server unix:/run/larder.sock put items apple red
      """,
    version: softwareVersion,
    groupedSubcommands: [
      CommandGroup(name: "Server", subcommands: [Ping.self, Stats.self, Stores.self, Create.self, Drop.self]),
      CommandGroup(
        name: "Entries", subcommands: [Put.self, Get.self, GetMany.self, Delete.self, Count.self, Page.self]),
      CommandGroup(name: "Whole stores", subcommands: [Load.self, Dump.self, Backup.self, Restore.self]),
      CommandGroup(name: "Offline", subcommands: [Verify.self, Check.self]),
    ])

  @OptionGroup var connection: ConnectionOptions

  /// Without a command there is nothing to do, and the help says what there is.
  func run() throws {
    Self.logHelp()
    throw ExitCode(ExitStatus.usage.rawValue)
  }

  static func main() async {
    // A reader that goes away is told by EPIPE, and is no accident.
    signal(SIGPIPE, SIG_IGN)
    Glibc.exit(await status().rawValue)
  }

  private static func status() async -> ExitStatus {
    do {
      try checkEncoding()
      var command = try await asyncParseAsRoot()
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
