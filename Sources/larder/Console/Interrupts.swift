import Dispatch
import Glibc
import Platform

/// Ctrl-C while a command runs cancels the command instead of ending the process. As long as there is a value of it.
final class Interrupts: Sendable {
  private struct State: Sendable {
    var command: Task<Void, Never>?
    var count = 0
  }

  private let state = Lock(State())
  /// Safe because only `init` and `deinit` touch it.
  nonisolated(unsafe) private let source: any DispatchSourceSignal

  init() {
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    unsafe self.source = source
    source.setEventHandler { [weak self] in self?.interrupt() }
    source.activate()
  }

  deinit {
    unsafe source.cancel()
    signal(SIGINT, SIG_DFL)
  }

  /// Waits for a command, which Ctrl-C cancels meanwhile.
  func wait(for command: Task<Void, Never>) async {
    state.withLock { $0 = State(command: command) }
    await command.value
    state.withLock { $0 = State() }
  }

  private func interrupt() {
    let command = state.withLock { state in
      state.count += 1
      // The terminal has shown ^C, and what comes next begins a line: said before `wait` can return to a prompt.
      if state.command != nil {
        logLine(state.count < 2 ? "" : "\nlarder: the command is yet to stop; Ctrl-\\ ends larder at once")
      }
      return state.command
    }
    command?.cancel()
  }
}
