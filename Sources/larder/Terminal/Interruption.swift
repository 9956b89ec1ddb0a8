import Dispatch
import Glibc

/// Runs what has no end of its own until the process is asked to end, or the command that does it. That is no failure.
func untilInterrupted(_ body: @escaping @Sendable () async throws -> Void) async throws {
  let running = Task(operation: body)
  // Dispatch handles a signal from its first source on, and for good. The console has its own source of interruptions, which cancels its
  // commands, and is to end when it is asked to, whatever it has run before.
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
