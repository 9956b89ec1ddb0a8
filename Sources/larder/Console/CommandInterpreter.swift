import ArgumentParser
import Basics
import Platform

/// Executes the commands of a console or script, one after another, with the client and the settings of its session.
@MainActor
struct CommandInterpreter {
  enum NextStep { case readLine, quit }

  let session: ConsoleSession
  /// What makes Ctrl-C cancel a command; nil if it ends the process.
  private let interrupts: InterruptHandler?
  /// A Boolean value that indicates whether the commands come from a file that another command names.
  private var isReadingFile = false

  init(_ session: ConsoleSession, _ interrupts: InterruptHandler? = nil) {
    self.session = session
    self.interrupts = interrupts
  }

  /// Executes a command, and reports its error.
  func execute(_ line: CommandWords) async -> (status: ExitStatus, next: NextStep) {
    do {
      var words = try line.all()
      // Allows typing a command as the help and the manual show it.
      if words.first == LarderCommand.configuration.commandName { words.removeFirst() }
      guard let first = words.first else { return (.success, .readLine) }
      switch ConsoleCommand(rawValue: first) {
      case .quit?, .exit?: return (.success, .quit)
      case .questionMark?: try print(ConsoleCommand.overview)
      case .help? where words.dropFirst().allSatisfy { ConsoleCommand(rawValue: $0) != nil }:
        try print(ConsoleCommand.overview)
      case .format?: try setFormat(words)
      case .read?: return try await readFile(words)
      default: return (try await run(words), .readLine)
      }
      return (.success, .readLine)
    } catch {
      return (LarderCommand.report(error), .readLine)
    }
  }

  private func print(_ text: String) throws {
    var output = Output()
    try output.writeLine(text)
  }

  private func setFormat(_ words: [String]) throws {
    guard words.count == 2, let format = OutputFormat(rawValue: words[1]) else {
      let suggestion = SpellingSuggestion.nearest(to: words.last!, of: OutputFormat.allCases.map(\.rawValue))
      let question = words.count == 2 ? CommandFailure.question(suggestion) : ""
      throw CommandFailure(
        .usage,
        "unknown format; \(question)type 'format table', 'format json' or 'format csv' (now: \(session.format ?? .table))"
      )
    }
    session.format = format
  }

  private func readFile(_ words: [String]) async throws -> (status: ExitStatus, next: NextStep) {
    guard words.count == 2, words[1] != "-" else {
      throw CommandFailure(.usage, "name one file; type '\(ConsoleCommand.read.rawValue) FILE'")
    }
    guard !isReadingFile else {
      throw CommandFailure(.usage, "a file of commands can't read another one; read both, one after the other")
    }
    var interpreter = self
    interpreter.isReadingFile = true
    var script = Script(try InputFile(path: words[1]), name: words[1])
    return (try await script.run(interpreter), .readLine)
  }

  private func run(_ words: [String]) async throws -> ExitStatus {
    var words = words
    if !words[0].hasPrefix("-"), CommandSyntax.larder.command(words[0]) == nil {
      let names = CommandSyntax.larder.commands.map(\.commandName) + ConsoleCommand.allCases.map(\.rawValue)
      let meant = ForeignWords.command(meaning: words[0]) ?? SpellingSuggestion.nearest(to: words[0], of: names)
      let question = CommandFailure.question(meant)
      throw CommandFailure(.usage, "there is no command '\(words[0])'; \(question)'help' lists the commands")
    }
    if words.count == 2, words[1] == ConsoleCommand.questionMark.rawValue {
      words = [ConsoleCommand.help.rawValue, words[0]]
    }
    let (commandLine, session, place) = (words, session, ConsoleSession.place)
    let task = Task.detached {
      await ConsoleSession.$current.withValue(session) {
        await ConsoleSession.$place.withValue(place) { await LarderCommand.execute(commandLine) }
      }
    }
    guard let interrupts else { return await task.value }
    let cancellable = Task {
      await withTaskCancellationHandler {
        _ = await task.value
      } onCancel: {
        task.cancel()
      }
    }
    await interrupts.wait(for: cancellable)
    return await task.value
  }
}
