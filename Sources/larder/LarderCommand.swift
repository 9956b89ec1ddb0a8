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
      in ${XDG_STATE_HOME:-~/.local/state}/larder. If standard input is not a terminal, larder runs the commands in \
      its lines in the same way: it skips blank lines and those that begin with #, stops at the first command that \
      fails, and exits with its status. With --keep-going it continues, and exits with the status of the first failure.

      Without --server, larder connects to the server of a profile, to the addresses in LARDER_SERVER or, without these, to \
      the first of the sockets \
      \(ServerSearch.help) that has a server.

      To print a completion script for your shell: larder --generate-completion-script bash (or zsh, or fish)

      Example: larder --server unix:/run/larder.sock put items apple red
      """,
    version: softwareVersion,
    groupedSubcommands: [
      CommandGroup(
        name: "Server",
        subcommands: [
          Ping.self, Stats.self, Top.self, SlowLog.self, Stores.self, Create.self, Drop.self, Whoami.self,
          ConsoleLink.self,
          RulesCommand.self, ClusterCommand.self,
        ]),
      CommandGroup(
        name: "Entries",
        subcommands: [
          Put.self, Get.self, GetMany.self, Delete.self, Count.self, Page.self, Increment.self, Touch.self,
          Persist.self, Copy.self, Rename.self, Apply.self, Watch.self,
        ]),
      CommandGroup(name: "Documents", subcommands: [Find.self, Update.self, IndexCommand.self]),
      CommandGroup(
        name: "Whole stores", subcommands: [Load.self, Dump.self, CopyStore.self, Backup.self, Restore.self]),
      CommandGroup(name: "Offline", subcommands: [Verify.self, Check.self, JSONCommand.self, TokenCommand.self]),
    ])

  @OptionGroup private var connection: ConnectionOptions

  @Flag(help: "In a script on standard input, continue after a command that fails.")
  private var keepGoing = false

  /// Starts the console or, if standard input is not a terminal, runs the commands in it. Without either, prints the
  /// help and fails.
  func run() async throws {
    if ConsoleSession.current != nil { throw CommandFailure(.usage, "a command is missing; 'help' lists the commands") }
    if Console.isAvailable { return try await Self.runConsole(connection) }
    let input = InputFile()
    if !input.isTerminal, let status = try await Self.runScript(input, connection, keepGoing: keepGoing) {
      if status != .success { throw ExitCode(status.rawValue) }
      return
    }
    logLine(Self.helpMessage())
    throw ExitCode(ExitStatus.usage.rawValue)
  }

  @MainActor
  private static func runConsole(_ connection: ConnectionOptions) async throws {
    var failure: (any Error)?
    var servers = ServerList(.default)
    do { servers = try connection.servers() } catch let error as CommandFailure where error.status == .unreachable {
      failure = error
    }
    var console = try Console(ConsoleSession(connection.access(to: servers)))
    await console.run(reporting: failure)
  }

  /// - Returns: The exit status; nil if the input is empty.
  @MainActor
  private static func runScript(
    _ input: consuming InputFile, _ connection: ConnectionOptions, keepGoing: Bool
  ) async throws -> ExitStatus? {
    var script = Script(input, stopsAtFailure: !keepGoing)
    guard try script.readFirstLine() else { return nil }
    let session = try ConsoleSession(connection.access(), ownsInput: true)
    return try await script.run(CommandInterpreter(session))
  }

  static func main() async {
    // With SIGPIPE ignored, a write to a closed pipe fails with EPIPE, which `Output` handles.
    signal(SIGPIPE, SIG_IGN)
    guard StandardDescriptors.reserve() else { Glibc.exit(ExitStatus.usage.rawValue) }
    do { Glibc.exit(await execute(try arguments()).rawValue) } catch { Glibc.exit(report(error).rawValue) }
  }

  /// Parses and runs a command, and reports its error.
  /// - Parameter words: The command line without the program's name.
  static func execute(_ words: [String]) async -> ExitStatus {
    let words = CommandLinePosition.separatingFields(in: CommandLinePosition.droppingSeparators(in: words))
    let (parsedWords, keys) = CommandLinePosition.separatingKeys(in: words)
    do {
      if let script = CompletionScript.requested(by: words) {
        var output = Output()
        try output.writeLine(script)
        return .success
      }
      if let (word, before) = CommandLinePosition.unknownHelpTopic(in: words) {
        throw CommandFailure(.usage, unknownCommandMessage(word, before))
      }
      try await KeysArguments.$separated.withValue(keys) {
        let command = try await asyncParseAsRoot(parsedWords)
        try await Output.$options.withValue((command as? any OutputCommand)?.outputOptions) { try await run(command) }
      }
      return .success
    } catch let error as LarderError where error.kind == .storeUnknown {
      return printFailure(CommandFailure(error, suggestion: await storeSuggestion(words)))
    } catch {
      return report(error, commandLine: parsedWords)
    }
  }

  /// Returns the store most like the one that a command line names.
  private static func storeSuggestion(_ words: [String]) async -> String? {
    guard let name = CommandLinePosition(after: words).argument(named: "store") else { return nil }
    return SpellingSuggestion.nearest(to: name, of: await StoreNameCompletion.names(words, words.count, ""))
  }

  private static func run(_ command: any ParsableCommand) async throws {
    var command = command
    if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
  }

  // MARK: Errors

  /// Prints why a command ended, in one line, or the text that the parser was asked for, such as the help.
  /// - Parameter words: The command line that caused the error.
  static func report(_ error: any Error, commandLine words: [String] = []) -> ExitStatus {
    switch error {
    case is OutputClosed: return .success
    case is CancellationError: return printFailure(CommandFailure(.unreachable, "interrupted"))
    case let failure as CommandFailure: return printFailure(failure)
    case let error as LarderError:
      let probed = error.kind == .closed ? ServerProbe.failure : nil
      return printFailure(probed ?? CommandFailure(error))
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

  /// Returns a question that names the command most like a word, or nothing.
  /// - Parameter words: The command line before the word.
  private static func suggestion(for word: String, _ words: some Sequence<String>) -> String {
    let command = CommandLinePosition(after: words).command
    let isRoot = command.commandName == configuration.commandName
    let foreign = isRoot ? ForeignWords.command(meaning: word) : nil
    return CommandFailure.question(
      foreign ?? SpellingSuggestion.nearest(to: word, of: command.commands.map(\.commandName)))
  }

  /// Returns what is wrong with a command line and which command shows the help.
  private static func usageMessage(_ error: any Error, _ words: [String]) -> String {
    let message = message(for: error)
    if let (word, before) = CommandLinePosition.unknownCommand(in: words) {
      return unknownCommandMessage(word, before)
    }
    // The parser may have found something else that is wrong because of the option.
    if !message.hasPrefix("Unknown option"), let option = CommandLinePosition.unknownOption(in: words) {
      return "Unknown option '\(option)'; \(dashHint)see '\(CommandLinePosition(after: words).helpCommand)'"
    }
    if message.hasPrefix("Missing expected argument"), let better = misplacedOptionMessage(words) { return better }
    let lines = fullMessage(for: error).split(separator: "\n")
    let reference = lines.last { $0.contains("See '") }?.split(separator: "'") ?? []
    let help = reference.count > 1 ? reference[1] : "larder --help"
    guard message.hasPrefix("Unknown option") else { return "\(message); see '\(help)'" }
    let known = CommandLinePosition(after: words).command.options
    if let option = words.compactMap(ForeignWords.option(meaning:)).first(where: known.contains) {
      // The parser's own suggestion is only similar in spelling.
      return "\(message.prefix { $0 != "." }); \(CommandFailure.question(option))see '\(help)'"
    }
    return "\(message); \(dashHint)see '\(help)'"
  }

  private static func unknownCommandMessage(_ word: String, _ before: ArraySlice<String>) -> String {
    let position = CommandLinePosition(after: before)
    return "there is no command '\(word)'; \(suggestion(for: word, before))see '\(position.helpCommand)'"
  }

  private static func printFailure(_ failure: CommandFailure) -> ExitStatus {
    printLine(failure.message)
    return failure.status
  }

  /// Prints what may be wrong with a command that succeeds.
  static func warn(_ message: String) { printLine("warning: \(message)") }

  private static func printLine(_ message: String) {
    let place = ConsoleSession.place.map { "\($0): " } ?? ""
    logLine("larder: \(place)\(oneLine(message))")
  }

  /// Replaces control characters with spaces and escapes other invisible ones, so that a text from the server or a file name can neither break the line
  /// nor control the terminal.
  static func oneLine(_ text: String) -> String {
    var line = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      let isControl = scalar.properties.generalCategory == .control
      if !isControl { line.append(scalar) } else if line.last != " " { line.append(" ") }
    }
    return EscapedText.line(String(line))
  }

  private static func arguments() throws(CommandFailure) -> [String] {
    do { return try ProcessArguments.words() } catch {
      guard case .notUTF8 = error else { throw CommandFailure(.usage, "\(error)") }
      throw CommandFailure(.usage, "\(error), as keys must be; pass a binary value on standard input")
    }
  }
}
