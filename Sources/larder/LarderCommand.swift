import ArgumentParser
import Basics
import Glibc
import Larder
import Platform

/// The command `larder`. Its arguments, output and exit statuses are a contract that scripts depend on.
///
/// A subcommand throws to fail; `report` turns the error into one line and an exit status. The same code runs commands
/// from the command line and from the console.
@main
struct LarderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder",
    abstract: "Works with the stores of a Larder server.",
    discussion: """
      A KEY is 1 to 4096 bytes of UTF-8.

      A word that begins with a dash is an option, or the value of the option before it. After -- every word is an \
      argument: put -- before a KEY or VALUE that begins with a dash. A field of 'larder index create' that begins \
      with one dash, such as -age, is an argument. Options can follow arguments, except -h and --help, which precede \
      them.

      Errors go to standard error, one line each. The exit status is one of these:
        0  success
        1  not found
        2  invalid command line or input
        3  refused by the server
        4  connection failure or timeout
        5  damaged files, or files that are not JSON

      On a terminal, larder without a COMMAND starts a console, which runs commands until 'quit' and keeps a history \
      in ${XDG_STATE_HOME:-~/.local/state}/larder. Without a terminal this is a usage error, because larder does not \
      read commands from standard input.

      To print a completion script for your shell: larder --generate-completion-script bash (or zsh, or fish)

      Example: larder --server unix:/run/larder.sock put items apple red
      """,
    version: softwareVersion,
    groupedSubcommands: [
      CommandGroup(
        name: "Server",
        subcommands: [Ping.self, Stats.self, Top.self, SlowLog.self, Stores.self, Create.self, Drop.self]),
      CommandGroup(
        name: "Entries",
        subcommands: [Put.self, Get.self, GetMany.self, Delete.self, Apply.self, Count.self, Page.self, Watch.self]),
      CommandGroup(name: "Documents", subcommands: [Find.self, Update.self, IndexCommand.self]),
      CommandGroup(name: "Whole stores", subcommands: [Load.self, Dump.self, Backup.self, Restore.self]),
      CommandGroup(name: "Offline", subcommands: [Verify.self, Check.self, JSONCommand.self]),
    ])

  @OptionGroup private var connection: ConnectionOptions

  /// Starts the console. Without a terminal, prints the help and fails.
  func run() async throws {
    if ConsoleSession.current != nil { throw CommandFailure(.usage, "a command is missing; 'help' lists the commands") }
    guard Console.isAvailable else {
      logLine(Self.helpMessage())
      throw ExitCode(ExitStatus.usage.rawValue)
    }
    let session = try ConsoleSession(try connection.address(), timeout: connection.effectiveTimeout)
    try await Self.runConsole(session)
  }

  @MainActor
  private static func runConsole(_ session: ConsoleSession) async throws {
    var console = try Console(session)
    await console.run()
  }

  static func main() async {
    // With SIGPIPE ignored, a write to a closed pipe fails with EPIPE, which `Output` handles.
    signal(SIGPIPE, SIG_IGN)
    do { try checkEncoding() } catch { Glibc.exit(report(error).rawValue) }
    Glibc.exit(await execute(Array(CommandLine.arguments.dropFirst())).rawValue)
  }

  /// Parses and runs a command, and reports its error.
  /// - Parameter words: The command line without the program's name.
  static func execute(_ words: [String]) async -> ExitStatus {
    let words = CommandLinePosition.separatingFields(in: words)
    do {
      try HelpTopic.check(words)
      if let script = CompletionScript.requested(by: words) {
        var output = Output()
        try output.writeLine(script)
        return .success
      }
      var command = try await asyncParseAsRoot(words)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      return .success
    } catch {
      return report(error, commandLine: words)
    }
  }

  // MARK: Errors

  /// Prints why a command ended, in one line, or the text that the parser was asked for, such as the help.
  /// - Parameter words: The command line that caused the error.
  static func report(_ error: any Error, commandLine words: [String] = []) -> ExitStatus {
    switch error {
    case is OutputClosed: return .success
    case is CancellationError: return printFailure(CommandFailure(.unreachable, "interrupted"))
    case let failure as CommandFailure: return printFailure(failure)
    case let error as LarderError: return printFailure(CommandFailure(error))
    case let status as ExitCode: return ExitStatus(rawValue: status.rawValue) ?? .usage
    default:
      if exitCode(for: error) != .success { return printFailure(CommandFailure(.usage, usageMessage(error, words))) }
      // The parser found an option that it answers itself, such as -h. Where a key or value was meant, that is not a
      // success.
      if let message = misplacedOptionMessage(words) { return printFailure(CommandFailure(.usage, message)) }
      var output = Output()
      do { try output.writeLine(fullMessage(for: error)) } catch { return report(error) }
      return .success
    }
  }

  private static let dashHint = "put -- before a key or value that begins with a dash, or "

  private static func misplacedOptionMessage(_ words: [String]) -> String? {
    guard let option = CommandLinePosition.misplacedOption(in: words) else { return nil }
    return "Unexpected option '\(option)'; \(dashHint)see '\(CommandLinePosition(after: words).helpCommand)'"
  }

  /// Returns what is wrong with a command line and which command shows the help.
  private static func usageMessage(_ error: any Error, _ words: [String]) -> String {
    let message = message(for: error)
    if message.hasPrefix("Missing expected argument"), let better = misplacedOptionMessage(words) { return better }
    let lines = fullMessage(for: error).split(separator: "\n")
    let reference = lines.last { $0.contains("See '") }?.split(separator: "'") ?? []
    let help = reference.count > 1 ? reference[1] : "larder --help"
    return "\(message); \(message.hasPrefix("Unknown option") ? dashHint : "")see '\(help)'"
  }

  private static func printFailure(_ failure: CommandFailure) -> ExitStatus {
    logLine("larder: \(oneLine(failure.message))")
    return failure.status
  }

  /// Replaces control characters with spaces, so that a text from the server or a file name can neither break the line
  /// nor control the terminal.
  static func oneLine(_ text: String) -> String {
    var line = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      let isControl = scalar.properties.generalCategory == .control
      if !isControl { line.append(scalar) } else if line.last != " " { line.append(" ") }
    }
    return String(line)
  }

  /// Refuses arguments that are not UTF-8, because Swift would silently replace their invalid bytes.
  private static func checkEncoding() throws(CommandFailure) {
    for index in 0..<Int(CommandLine.argc) {
      guard let argument = unsafe CommandLine.unsafeArgv[index] else { return }
      guard unsafe String(validatingCString: argument) == nil else { continue }
      throw CommandFailure(
        .usage, "argument \(index) is not valid UTF-8, as keys must be; pass a binary value on standard input")
    }
  }
}
