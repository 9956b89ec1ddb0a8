import DataSourceFutures
import Foundation

/// Runs a closure that may block on threads of its own, one call on each, and returns what the calls return.
func onThreads<R: Sendable>(_ count: Int, _ body: @escaping @Sendable () throws -> R) async throws -> [R] {
  let results = (0..<count).map { _ in
    Future<R> { resolver in
      Thread { resolver.set(Result(catching: body)) }.start()
    }
  }
  return try await Future.batch(results).value
}
