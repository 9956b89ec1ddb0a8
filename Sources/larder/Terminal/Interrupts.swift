import Dispatch
import Glibc
import Platform
import Synchronization

/// Runs a command that has no end of its own until the process gets SIGINT or SIGTERM or the task is cancelled, which
/// is not an error.
func runUntilInterrupted(_ body: @escaping @Sendable () async throws -> Void) async throws {
  let running = Task(operation: body)
  // Once Dispatch has a source for a signal, it handles that signal for the life of the process. The console has its
  // own source for SIGINT, which cancels its commands, and SIGTERM must keep ending the console.
  let signals = ConsoleSession.current == nil ? [SIGINT, SIGTERM] : []
  let sources = signals.map { number in
    let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
    source.setEventHandler { running.cancel() }
    source.activate()
    return source
  }
  defer { for source in sources { source.cancel() } }
  do {
    try await withTaskCancellationHandler {
      try await running.value
    } onCancel: {
      running.cancel()
    }
  } catch  where running.isCancelled {}
}

/// A request to stop work that leaves something unfinished, such as a load, so that it can say how far it came.
final class StopRequest: Sendable {
  @TaskLocal private static var current: StopRequest?

  private let made = Atomic(false)

  /// A Boolean value that indicates whether the current task should stop its work.
  static var isMade: Bool { current?.made.load(ordering: .relaxed) ?? false }

  /// Runs work that stops early if the process gets SIGINT or SIGTERM or the task is cancelled. A second signal ends the
  /// process at once.
  static func observe(_ body: @escaping @Sendable () async throws -> Void) async throws {
    let request = StopRequest()
    // In the console, Ctrl-C cancels the task.
    let sources = ConsoleSession.current == nil ? [SIGINT, SIGTERM].map(request.source) : []
    defer { for source in sources { source.cancel() } }
    // The work itself isn't cancelled: it still has to finish what it has begun.
    let work = $current.withValue(request) { Task(operation: body) }
    try await withTaskCancellationHandler {
      try await work.value
    } onCancel: {
      request.made.store(true, ordering: .relaxed)
    }
  }

  private func source(for number: Int32) -> any DispatchSourceSignal {
    let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
    source.setEventHandler { [self] in
      if made.exchange(true, ordering: .relaxed) { _exit(128 + number) }
    }
    source.activate()
    return source
  }
}

/// Makes Ctrl-C cancel the console's current command instead of ending the process, for as long as the handler exists.
final class InterruptHandler: Sendable {
  private struct State: Sendable {
    var command: Task<Void, Never>?
    var interruptCount = 0
  }

  private let state = Lock(State())
  /// Safe because only `init` and `deinit` access it.
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

  /// Waits for a command, which Ctrl-C cancels.
  func wait(for command: Task<Void, Never>) async {
    state.withLock { $0 = State(command: command) }
    await command.value
    state.withLock { $0 = State() }
  }

  private func interrupt() {
    let command = state.withLock { state in
      state.interruptCount += 1
      // The terminal has printed ^C. End that line under the lock, before `wait` can return to a prompt.
      if state.command != nil {
        logLine(
          state.interruptCount < 2
            ? "" : "\nlarder: the command has not stopped yet; press Ctrl-\\ to end larder at once")
      }
      return state.command
    }
    command?.cancel()
  }
}
