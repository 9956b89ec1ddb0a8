import DataSourceFutures
import DataSources
import Foundation

/// The lines that the program has printed.
final class Output: @unchecked Sendable {
  static let shared = Output()

  private let lock = NSLock()
  private var lines: Set<String> = []

  func write(_ line: String) {
    lock.withLock {
      _ = lines.insert(line)
      FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
  }

  func wait(for line: String) {
    while !lock.withLock({ lines.contains(line) }) { usleep(1_000) }
  }
}

/// Prints a line. Hides Swift's function from the snippets, so that the program can wait for their output.
func print(_ items: Any...) {
  Output.shared.write(items.map { "\($0)" }.joined(separator: " "))
}

/// Waits for a future. A future must not need the main thread.
func wait<T>(for future: Future<T>) throws -> T {
  try future.result.get()
}

/// A source that records its calls and passes them to a source in memory.
final class RecordingDataSource: GetDataSource, PutDataSource, DeleteDataSource, @unchecked Sendable {
  typealias T = String

  private let source = InMemoryDataSource<String>()
  private let lock = NSLock()
  private var calls: [String] = []

  /// Waits until this many calls have been made, and returns their names in alphabetical order.
  func waitForCalls(_ count: Int) -> String {
    while lock.withLock({ calls.count < count }) { usleep(1_000) }
    return lock.withLock { calls.sorted().joined(separator: ", ") }
  }

  private func record(_ call: String) {
    lock.withLock { calls.append(call) }
  }

  func get(_ query: any Query) async throws -> String {
    record("get")
    return try await source.get(query)
  }

  func getAll(_ query: any Query) async throws -> [String] {
    record("getAll")
    return try await source.getAll(query)
  }

  func put(_ value: String?, in query: any Query) async throws -> String {
    record("put")
    return try await source.put(value, in: query)
  }

  func putAll(_ array: [String], in query: any Query) async throws -> [String] {
    record("putAll")
    return try await source.putAll(array, in: query)
  }

  func delete(_ query: any Query) async throws {
    record("delete")
    try await source.delete(query)
  }
}
