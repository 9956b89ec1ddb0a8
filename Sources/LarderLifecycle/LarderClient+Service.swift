import Larder
import ServiceLifecycle

/// A client is a service, so that a service group shuts it down.
///
///     let group = ServiceGroup(
///       services: [client, server], gracefulShutdownSignals: [.sigterm], logger: logger)
///     try await group.run()
///
/// A group shuts its services down in the reverse order of its list: list the client before the services that use it.
extension LarderClient: Service {
  /// Waits until the service group shuts down gracefully, and then shuts the client down: calls in progress are
  /// answered first. If the task is cancelled, closes the client at once.
  ///
  /// A client needs no running service to make calls.
  public func run() async throws {
    do { try await gracefulShutdown() } catch { return close() }
    await withTaskCancellationHandler {
      await shutdown()
    } onCancel: {
      close()
    }
  }
}
