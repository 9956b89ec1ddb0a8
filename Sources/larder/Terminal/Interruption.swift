import Dispatch
import Glibc

/// Runs what has no end of its own until the process is asked to end, or the command that does it. That is no failure.
func untilInterrupted(_ body: @escaping @Sendable () async throws -> Void) async throws {
  let running = Task(operation: body)
  // Dispatch handles a signal from its first source on. To set an action here would take it from the console's source, which is there before.
  let sources = [SIGINT, SIGTERM].map { number in
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
