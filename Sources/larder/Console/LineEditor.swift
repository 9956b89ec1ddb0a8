import CLibedit
import Glibc

/// Reads lines from the terminal, with editing by libedit. Used only on the main thread, which it blocks; a process has
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
  /// Read by libedit, on the main thread.
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
    unsafe editor_set_owner(editor, Unmanaged.passUnretained(self).toOpaque())
    unsafe history_set_limit(history, Int32(historyLimit))
    unsafe editor_set_history(editor, history)
    unsafe editor_set_prompt(editor) { unsafe LineEditor.of($0).prompt }
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
    unsafe editor_prepare(editor)
    var count: Int32 = 0
    guard let bytes = unsafe el_gets(editor, &count), count > 0 else {
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
      MainActor.assumeIsolated { unsafe LineEditor.of(editor).suspend() }
      return UInt8(CC_REDISPLAY)
    }
    let keys = [
      "^Z": "larder-suspend", "^I": "larder-complete", "^C": "larder-abandon", "^R": "em-inc-search-prev",
      "\\e[3~": "ed-delete-next-char", "\\e[1;5C": "em-next-word", "\\e[1;5D": "ed-prev-word",
    ]
    for (key, command) in keys { unsafe editor_bind(editor, key, command) }
    // The person's own settings for libedit override these.
    unsafe el_source(editor, nil)
  }

  /// Stops the process as the terminal would, with the terminal's own settings, until the shell continues it.
  private func suspend() {
    unsafe editor_restore(editor)
    write("\n")
    let handler = signal(SIGTSTP, SIG_DFL)
    // Dispatch runs the main actor on a thread that blocks signals.
    var stop = sigset_t()
    var blocked = sigset_t()
    unsafe sigemptyset(&stop)
    unsafe sigaddset(&stop, SIGTSTP)
    unsafe pthread_sigmask(SIG_UNBLOCK, &stop, &blocked)
    raise(SIGTSTP)
    unsafe pthread_sigmask(SIG_SETMASK, &blocked, nil)
    signal(SIGTSTP, handler)
    unsafe editor_prepare(editor)
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

  private func write(_ text: String) {
    flush_standard_output()
    Terminal.write(text)
  }

  /// Safe because the owner outlives the editor.
  nonisolated private static func of(_ editor: OpaquePointer?) -> LineEditor {
    unsafe Unmanaged<LineEditor>.fromOpaque(editor_owner(editor)).takeUnretainedValue()
  }
}
