import CLibedit
import Glibc

/// Reads lines from the terminal, with editing by libedit. Used only on the main actor, which it blocks; a process has
/// at most one.
@MainActor
@safe
final class LineEditor {
  enum Input: Equatable {
    case line(String)
    /// Ctrl-C, which discards the line.
    case abandoned
    /// Ctrl-D on an empty line, or a closed terminal.
    case end
  }

  /// Completes the line up to the cursor.
  private var complete: (String) -> Completion = { _ in .none }

  private let editor: OpaquePointer
  private let history: OpaquePointer
  private let signals: SignalPipe
  /// Read by libedit, on the main actor.
  nonisolated(unsafe) private var prompt: UnsafeMutablePointer<CChar>?
  private var isAbandoned = false
  private var completes = true

  /// - Parameter historyLimit: The number of lines that the arrow keys can recall.
  init(historyLimit: Int) throws(CommandFailure) {
    _ = Terminal.isUTF8
    guard let editor = unsafe editor_make("larder"), let history = unsafe history_init() else {
      throw CommandFailure(.usage, "this terminal can't be used; check the variable TERM")
    }
    unsafe (self.editor, self.history) = (editor, history)
    signals = try SignalPipe([SIGTSTP, SIGCONT, SIGWINCH, SIGTERM, SIGHUP, SIGQUIT])
    unsafe editor_set_owner(editor, Unmanaged.passUnretained(self).toOpaque())
    unsafe history_set_limit(history, Int32(historyLimit))
    unsafe editor_set_history(editor, history)
    unsafe editor_set_prompt(editor) { unsafe LineEditor.of($0).prompt }
    unsafe editor_set_reader(editor) { editor, character in
      guard let next = MainActor.assumeIsolated({ unsafe LineEditor.of(editor).nextCharacter() }) else { return 0 }
      unsafe character?.pointee = next
      return 1
    }
    bindKeys()
  }

  isolated deinit {
    unsafe el_end(editor)
    unsafe history_end(history)
    unsafe free(prompt)
  }

  /// Sets what Tab does, given the line up to the cursor.
  func onTab(_ complete: @escaping (String) -> Completion) {
    self.complete = complete
  }

  /// - Parameter completes: Whether Tab completes words.
  func read(prompt text: String, completes: Bool = true) -> Input {
    self.completes = completes
    unsafe free(prompt)
    unsafe prompt = strdup(text)
    isAbandoned = false
    flush_standard_output()
    var count: Int32 = 0
    let bytes = unsafe signals.receiving {
      unsafe editor_prepare(editor)
      return unsafe el_gets(editor, &count)
    }
    guard let bytes = unsafe bytes, count > 0 else {
      write(isAbandoned ? "^C\n" : "\n")
      return isAbandoned ? .abandoned : .end
    }
    let line = unsafe String(decoding: UnsafeRawBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    return .line(line.last == "\n" ? String(line.dropLast()) : line)
  }

  /// Adds a line to those that the arrow keys recall.
  func remember(_ line: String) {
    unsafe history_enter(history, line)
  }

  // MARK: Keys

  private func bindKeys() {
    unsafe editor_set_keys(editor)
    unsafe editor_add(editor, "larder-abandon", "Abandon the line") { editor, _ in
      MainActor.assumeIsolated { unsafe LineEditor.of(editor).isAbandoned = true }
      return UInt8(CC_EOF)
    }
    unsafe editor_add(editor, "larder-complete", "Complete the word") { editor, _ in
      MainActor.assumeIsolated { unsafe LineEditor.of(editor).completeLine() }
    }
    unsafe editor_add(editor, "larder-suspend", "Suspend the process") { editor, _ in
      MainActor.assumeIsolated { unsafe LineEditor.of(editor).handle(SIGTSTP) }
      return UInt8(CC_NORM)
    }
    let keys = [
      "^Z": "larder-suspend", "^I": "larder-complete", "^C": "larder-abandon", "^R": "em-inc-search-prev",
      "\\e[3~": "ed-delete-next-char", "\\e[1;5C": "em-next-word", "\\e[1;5D": "ed-prev-word",
    ]
    for (key, command) in keys { unsafe editor_bind(editor, key, command) }
    // The person's own settings for libedit override these.
    unsafe el_source(editor, nil)
  }

  private func completeLine() -> UInt8 {
    guard completes, let line = unsafe el_line(editor)?.pointee else { return UInt8(CC_ERROR) }
    let typed = unsafe String(
      decoding: UnsafeRawBufferPointer(start: line.buffer, count: line.cursor - line.buffer), as: UTF8.self)
    switch complete(typed) {
    case .none: return UInt8(CC_REFRESH_BEEP)
    case .replace(let scalars, let text):
      unsafe el_deletestr(editor, Int32(scalars))
      return unsafe el_insertstr(editor, text) == 0 ? UInt8(CC_REFRESH) : UInt8(CC_REFRESH_BEEP)
    case .show(let lines):
      write("\n\(lines)\n")
      return UInt8(CC_REDISPLAY)
    }
  }

  // MARK: Input

  /// Returns the next character that is typed, and handles the signals that arrive before it; nil at the end.
  private func nextCharacter() -> wchar_t? {
    var character: wchar_t = 0
    var state = mbstate_t()
    while let byte = nextByte() {
      var byte = CChar(bitPattern: byte)
      var count = unsafe mbrtowc(&character, &byte, 1, &state)
      if count == Self.invalid {
        // What came before isn't a character, but the byte may begin one.
        state = mbstate_t()
        count = unsafe mbrtowc(&character, &byte, 1, &state)
      }
      switch count {
      case Self.invalid: state = mbstate_t()
      case Self.incomplete: break
      default: return character
      }
    }
    return nil
  }

  private static let invalid = Int(bitPattern: .max), incomplete = invalid - 1

  private func nextByte() -> UInt8? {
    while true {
      if let signal = signals.wait(for: STDIN_FILENO) {
        handle(signal)
        continue
      }
      var byte: UInt8 = 0
      let count = unsafe Glibc.read(STDIN_FILENO, &byte, 1)
      if count == 1 { return byte }
      guard count < 0, errno == EAGAIN || errno == EINTR else { return nil }
    }
  }

  // MARK: Signals

  private func handle(_ signal: Int32) {
    switch signal {
    case SIGWINCH: unsafe el_resize(editor)
    case SIGCONT where isRaw: break
    case SIGCONT: resume()
    default:
      unsafe editor_restore(editor)
      write("\n")
      signals.deliver(signal)
      resume()
    }
  }

  /// Whether the terminal still has the editor's settings: a shell changes them when it takes over the terminal.
  private var isRaw: Bool {
    var settings = termios()
    return unsafe tcgetattr(STDIN_FILENO, &settings) == 0 && settings.c_lflag & tcflag_t(ICANON) == 0
  }

  private func resume() {
    unsafe editor_restore(editor)
    unsafe editor_prepare(editor)
    unsafe editor_refresh(editor)
  }

  private func write(_ text: String) {
    flush_standard_output()
    Terminal.write(text)
  }

  /// Safe because the owner outlives the editor.
  nonisolated private static func of(_ editor: OpaquePointer?) -> LineEditor {
    unsafe Unmanaged<LineEditor>.fromOpaque(editor_owner(editor)).takeUnretainedValue()
  }
}
