import ArgumentParser
import Basics
import Dispatch
import Glibc
import Larder
import Platform

/// The interactive console: reads a line, runs it like a command line, and repeats until the end. It owns the terminal
/// and the session, and runs on the main thread.
@MainActor
struct Console {
  /// How long the greeting waits for the server.
  private static let greetingTimeout = Duration.seconds(1)

  private let session: ConsoleSession
  private let editor: LineEditor
  private let interrupts = InterruptHandler()
  private var history = HistoryFile()

  /// A Boolean value that indicates whether standard input and output are terminals.
  nonisolated static var isAvailable: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 }

  init(_ session: ConsoleSession) throws {
    self.session = session
    editor = try LineEditor(historyLimit: HistoryFile.maxLineCount)
    for line in history.load() { editor.remember(line) }
    let completer = Completer(session: session)
    editor.onTab { Self.complete($0, completer) }
  }

  mutating func run() async {
    await greet()
    while true {
      switch editor.read(prompt: prompt) {
      case .abandoned: continue
      case .end: return
      case .line(let line):
        if let kept = history.add(line) { editor.remember(kept) }
        if await execute(line) == .quit { return }
      }
    }
  }

  // MARK: Prompt and greeting

  private var prompt: String {
    let address = EscapedText.line("\(session.address)")
    let shown = address.count > 30 ? "…" + address.suffix(29) : address
    return session.address == .default ? "larder> " : "\(shown)> "
  }

  private func greet() async {
    var line = "larder \(softwareVersion) at \(session.address)"
    var failure: LarderError?
    do throws(LarderError) {
      let stores = try await session.client.with(timeout: Self.greetingTimeout).stores()
      let name = EscapedText.line(session.client.serverName ?? "unknown server")
      line += " (\(name), \(stores.count) \(stores.count == 1 ? "store" : "stores"))"
    } catch { failure = error }
    print(line + "\nType 'help' for a list of commands, 'quit' or Ctrl-D to quit.")
    if let failure { _ = LarderCommand.report(failure) }
  }

  private func print(_ text: String) {
    var output = Output()
    do { try output.writeLine(text) } catch { _ = LarderCommand.report(error) }
  }

  // MARK: Commands

  private enum NextStep { case readLine, quit }

  private func execute(_ line: String) async -> NextStep {
    do {
      var words = try CommandWords.split(line)
      // Allows typing a command as the help and the manual show it.
      if words.first == LarderCommand.configuration.commandName { words.removeFirst() }
      guard let first = words.first else { return .readLine }
      switch ConsoleCommand(rawValue: first) {
      case .quit?, .exit?: return .quit
      case .questionMark?: print(ConsoleCommand.overview)
      case .help? where words.count == 1: print(ConsoleCommand.overview)
      case .format?: try setFormat(words)
      default: try await runCommand(words)
      }
    } catch {
      _ = LarderCommand.report(error)
    }
    return .readLine
  }

  private func setFormat(_ words: [String]) throws {
    guard words.count == 2, let format = ConsoleSession.Format(rawValue: words[1]) else {
      throw CommandFailure(
        .usage, "unknown format; type 'format table' or 'format json' (now: \(session.format))")
    }
    session.format = format
  }

  private func runCommand(_ words: [String]) async throws {
    var words = words
    if !words[0].hasPrefix("-"), CommandSyntax.larder.command(words[0]) == nil {
      let names = CommandSyntax.larder.commands.map(\.commandName) + ConsoleCommand.allCases.map(\.rawValue)
      let suggestion = SpellingSuggestion.nearest(to: words[0], of: names).map { "did you mean '\($0)'? " } ?? ""
      throw CommandFailure(.usage, "there is no command '\(words[0])'; \(suggestion)'help' lists the commands")
    }
    if words.count == 2, words[1] == ConsoleCommand.questionMark.rawValue {
      words = [ConsoleCommand.help.rawValue, words[0]]
    }
    let commandLine = words
    let session = session
    await interrupts.wait(
      for: Task.detached {
        await ConsoleSession.$current.withValue(session) { _ = await LarderCommand.execute(commandLine) }
      })
  }

  // MARK: Completion

  private static func complete(_ line: String, _ completer: Completer) -> Completion {
    let words = CommandWords(line)
    let typed = words.last?.text ?? ""
    let candidates = waitForResult { await completer.candidates(after: words.words, prefix: typed) }
    let kind = completer.wordKind(after: words.words, prefix: typed)
    let start = completer.sharedStart(of: typed, kind)
    return Completion(of: words.last, in: line, to: candidates, after: start, width: Terminal.width)
  }

  /// Runs a task on another thread and blocks this one, the line editor's, until the task ends. The task must end soon.
  private static func waitForResult(of body: @escaping @Sendable () async -> [String]) -> [String] {
    let (done, result) = (DispatchSemaphore(value: 0), Result())
    Task.detached {
      let names = await body()
      result.names.withLock { $0 = names }
      done.signal()
    }
    done.wait()
    return result.names.withLock { $0 }
  }

  private final class Result: Sendable {
    let names = Lock<[String]>([])
  }
}

/// The state that the commands of one console share: a client, whose connection stays open, and the output format. A
/// command finds it in its task's local storage; without a console there is none.
final class ConsoleSession: Sendable {
  @TaskLocal static var current: ConsoleSession?

  enum Format: String, CaseIterable {
    case table, json
  }

  let address: Address
  let timeout: Duration
  let client: LarderClient
  private let currentFormat = Lock(Format.table)

  init(_ address: Address, timeout: Duration) throws {
    self.address = address
    self.timeout = timeout
    client = try ConnectionOptions.client(for: address, timeout: timeout, maxReconnectDelay: .milliseconds(100))
  }

  var format: Format {
    get { currentFormat.withLock { $0 } }
    set { currentFormat.withLock { $0 = newValue } }
  }
}

/// The commands that exist only in the console.
enum ConsoleCommand: String, CaseIterable {
  case help, format, quit, exit
  case questionMark = "?"

  /// The text that `help` prints.
  static var overview: String {
    var lines: [String] = []
    for group in LarderCommand.configuration.groupedSubcommands {
      lines.append(group.name)
      lines += group.subcommands.flatMap { description($0._commandName, $0.configuration.abstract) }
    }
    lines.append("Console")
    lines += description("help COMMAND", "Describes a command. COMMAND ? does the same.")
    lines += description("format table|json", "Sets the format of results.")
    lines += description("quit", "Quits. Ctrl-D does the same.")
    lines.append("")
    lines += wrapped("Tab completes commands, options, stores, keys, fields and files. Ctrl-C interrupts a command.")
    lines += wrapped("Quote words as in a shell: 'two words', \"it's one\", two\\ words.")
    lines += wrapped("The history omits lines that begin with a space.")
    return lines.joined(separator: "\n")
  }

  private static func description(_ name: String, _ text: String) -> [String] {
    let column = 22
    let start = "  \(name)"
    return wrapped(text, after: start + String(repeating: " ", count: max(2, column - start.count)), indent: column)
  }

  /// Breaks a text into lines that fit the terminal, and indents all but the first.
  private static func wrapped(_ text: String, after start: String = "", indent: Int = 0) -> [String] {
    var lines = [start]
    var isFirst = true
    for word in text.split(separator: " ") {
      if !isFirst, lines[lines.count - 1].count + 1 + word.count > Terminal.width {
        lines.append(String(repeating: " ", count: indent) + word)
      } else {
        lines[lines.count - 1] += (isFirst ? "" : " ") + word
      }
      isFirst = false
    }
    return lines
  }
}
