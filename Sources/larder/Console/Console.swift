import ArgumentParser
import Basics
import Dispatch
import Glibc
import Larder
import Platform

/// A person's conversation with a server: reads a line, runs it as the command line would, and so on to the end. It owns the terminal and
/// the session; the main thread is its own.
@MainActor
struct Console {
  /// How long the first prompt waits for a server.
  private static let greetingTime = Duration.seconds(1)

  private let session: ConsoleSession
  private let editor: LineEditor
  private let interrupts = Interrupts()
  private var history = HistoryFile()

  /// Whether a person is there at both ends.
  nonisolated static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 }

  init(_ session: ConsoleSession) throws {
    self.session = session
    editor = try LineEditor(historyLimit: HistoryFile.limit)
    for line in history.load() { editor.remember(line) }
    let completer = Completer(session: session)
    editor.complete = { Self.complete($0, completer) }
  }

  mutating func run() async {
    await greet()
    while true {
      switch editor.read(prompt: prompt) {
      case .abandoned: continue
      case .end: return
      case .line(let line):
        if let kept = history.add(line) { editor.remember(kept) }
        if await perform(line) == .leave { return }
      }
    }
  }

  // MARK: What is said

  private var prompt: String {
    let address = EscapedText.line("\(session.address)")
    let shown = address.count > 30 ? "…" + address.suffix(29) : address
    return session.address == .default ? "larder> " : "\(shown)> "
  }

  private func greet() async {
    var line = "larder \(softwareVersion) at \(session.address)"
    var failure: LarderError?
    do throws(LarderError) {
      let stores = try await session.client.with(timeout: Self.greetingTime).stores()
      let name = EscapedText.line(session.client.serverName ?? "a server")
      line += ", which is \(name) with \(stores.count) \(stores.count == 1 ? "store" : "stores")"
    } catch { failure = error }
    say(line + ".\nType 'help' for the commands, 'quit' or Ctrl-D to leave.")
    if let failure { _ = LarderCommand.report(failure) }
  }

  private func say(_ text: String) {
    var output = Output()
    do { try output.writeLine(text) } catch { _ = LarderCommand.report(error) }
  }

  // MARK: A line

  private enum Step { case goOn, leave }

  private func perform(_ line: String) async -> Step {
    do {
      var words = try CommandWords.split(line)
      // What help and manuals show can be typed as it stands.
      if words.first == LarderCommand.configuration.commandName { words.removeFirst() }
      guard let first = words.first else { return .goOn }
      switch ConsoleWord(rawValue: first) {
      case .quit?, .exit?: return .leave
      case .questionMark?: say(ConsoleWord.overview)
      case .help? where words.count == 1: say(ConsoleWord.overview)
      case .format?: try setFormat(words)
      default: try await runCommand(words)
      }
    } catch {
      _ = LarderCommand.report(error)
    }
    return .goOn
  }

  private func setFormat(_ words: [String]) throws {
    guard words.count == 2, let format = ConsoleSession.Format(rawValue: words[1]) else {
      throw CommandFailure(
        .usage, "results are shown as 'format table' or as 'format json'; now it is \(session.format)")
    }
    session.format = format
  }

  private func runCommand(_ words: [String]) async throws {
    var words = words
    if !words[0].hasPrefix("-"), CommandSyntax.larder.command(words[0]) == nil {
      let names = CommandSyntax.larder.commands.map(\.commandName) + ConsoleWord.allCases.map(\.rawValue)
      let guess = SpellingSuggestion.nearest(to: words[0], of: names).map { "did you mean '\($0)'? " } ?? ""
      throw CommandFailure(.usage, "there is no command '\(words[0])'; \(guess)'help' lists the commands")
    }
    if words.count == 2, words[1] == ConsoleWord.questionMark.rawValue {
      words = [ConsoleWord.help.rawValue, words[0]]
    }
    let command = words
    let session = session
    await interrupts.wait(
      for: Task.detached {
        await ConsoleSession.$current.withValue(session) { _ = await LarderCommand.status(of: command) }
      })
  }

  // MARK: Tab

  private static func complete(_ line: String, _ completer: Completer) -> Completion {
    let words = CommandWords(line)
    let typed = words.last?.text ?? ""
    let candidates = waiting { await completer.candidates(words.words, typed) }
    let place = completer.place(words.words, typed)
    let arePaths = place == .file || place == .folder
    return Completion(of: words.last, in: line, to: candidates, arePaths: arePaths, width: Terminal.width)
  }

  /// Runs a body elsewhere while this thread waits, as it does in the editor. It has to end by itself, and soon.
  private static func waiting(_ body: @escaping @Sendable () async -> [String]) -> [String] {
    let (done, found) = (DispatchSemaphore(value: 0), Found())
    Task.detached {
      let names = await body()
      found.names.withLock { $0 = names }
      done.signal()
    }
    done.wait()
    return found.names.withLock { $0 }
  }

  private final class Found: Sendable {
    let names = Lock<[String]>([])
  }
}
