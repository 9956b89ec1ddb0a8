import Basics
import Dispatch
import Glibc
import Larder
import LarderTLS
import Platform

/// The interactive console: reads a line, runs it like a command line, and repeats until the end. It owns the terminal
/// and the session, and runs on the main actor.
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

  /// - Parameter failure: Why no server was found, if none was.
  mutating func run(reporting failure: (any Error)?) async {
    await greet(reporting: failure)
    let interpreter = CommandInterpreter(session, interrupts)
    var command: CommandWords?
    var lines: [String] = []
    while true {
      switch editor.read(prompt: command == nil ? prompt : Self.continuationPrompt, completes: command == nil) {
      case .abandoned: (command, lines) = (nil, [])
      case .end where command == nil: return
      case .end: (command, lines) = (nil, [])
      case .line(let line):
        var words = command ?? CommandWords("")
        words.continueLine(line)
        lines.append(line)
        if words.isUnfinished {
          command = words
          continue
        }
        // A line break between the words or in JSON is white space, and the history has one line for each command.
        if let kept = history.add(lines.joined(separator: " ")) { editor.remember(kept) }
        (command, lines) = (nil, [])
        if await interpreter.execute(words).next == .quit { return }
      }
    }
  }

  // MARK: Prompt and greeting

  private var prompt: String {
    let address = EscapedText.line("\(session.access.servers)")
    let shown = address.count > 30 ? "…" + address.suffix(29) : address
    return session.access.servers.onlyAddress.map(ServerSearch.candidates.contains) == true ? "larder> " : "\(shown)> "
  }

  /// The prompt for the next line of a command that is not finished.
  private static let continuationPrompt = "   ...> "

  private func greet(reporting searchFailure: (any Error)?) async {
    var line = "larder \(softwareVersion) at \(session.access.servers)"
    var failure = searchFailure
    if failure == nil {
      do throws(LarderError) {
        let stores = try await session.client.with(timeout: Self.greetingTimeout).stores()
        let name = EscapedText.line(session.client.serverName ?? "unknown server")
        line += " (\(name), \(stores.count) \(stores.count == 1 ? "store" : "stores"))"
      } catch { failure = error }
    }
    print(line + "\nType 'help' for a list of commands, 'quit' or Ctrl-D to quit.")
    if let failure { _ = LarderCommand.report(failure) }
  }

  private func print(_ text: String) {
    var output = Output()
    do { try output.writeLine(text) } catch { _ = LarderCommand.report(error) }
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

/// The state that the commands of one console or script share: a client, whose connection stays open, and the output
/// format. A command finds it in its task's local storage; without a console or script there is none.
final class ConsoleSession: Sendable {
  @TaskLocal static var current: ConsoleSession?
  /// Where the current command is in a script, such as `line 7`, for error messages; nil in the console.
  @TaskLocal static var place: String?

  let access: ServerAccess
  let client: LarderClient
  /// A Boolean value that indicates whether standard input has the commands, so that they can't read values from it.
  let ownsInput: Bool
  private let currentFormat = Lock<OutputFormat?>(nil)

  init(_ access: ServerAccess, ownsInput: Bool = false) throws {
    self.access = access
    self.ownsInput = ownsInput
    client = try access.client(maxReconnectDelay: .milliseconds(100))
  }

  /// The format that a person has set; nil for the default.
  var format: OutputFormat? {
    get { currentFormat.withLock { $0 } }
    set { currentFormat.withLock { $0 = newValue } }
  }
}
