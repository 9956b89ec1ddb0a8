@testable import DataSources

/// Returns the kind of the data source error that a body throws; nil if it doesn't throw one.
func failure<R>(_ body: () async throws -> R) async -> DataSourceError.Kind? {
  do {
    _ = try await body()
    return nil
  } catch {
    return (error as? DataSourceError)?.kind
  }
}

/// A value as a service might store it.
struct Item: Codable, Hashable, Sendable, ExpressibleByStringLiteral {
  let title: String
  let price: Int?

  init(_ title: String, price: Int? = nil) {
    self.title = title
    self.price = price
  }

  init(stringLiteral title: String) {
    self.init(title)
  }
}

/// A list of events in order, from any thread.
final class Recorder<Event: Sendable>: Sendable {
  private let recorded = LockedValue<[Event]>([])

  var events: [Event] { recorded.withLock { $0 } }

  func add(_ event: Event) {
    recorded.withLock { $0.append(event) }
  }
}

/// A source over another one that records its calls and makes some of them fail.
final class ScriptedDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let state = LockedValue<(calls: [DataSourceOperation], failures: [any Error])>(([], []))

  init(over source: AnyDataSource<T> = AnyDataSource(InMemoryDataSource())) { self.source = source }

  var calls: [DataSourceOperation] { state.withLock { $0.calls } }

  /// Makes the next calls fail with these errors, one after the other.
  func fail(with errors: any Error...) {
    state.withLock { $0.failures += errors }
  }

  private func record(_ operation: DataSourceOperation) throws {
    let failure: (any Error)? = state.withLock {
      $0.calls.append(operation)
      return $0.failures.isEmpty ? nil : $0.failures.removeFirst()
    }
    if let failure { throw failure }
  }

  func get(_ query: any Query) async throws -> T {
    try record(.get)
    return try await source.get(query)
  }

  func getAll(_ query: any Query) async throws -> [T] {
    try record(.getAll)
    return try await source.getAll(query)
  }

  @discardableResult
  func put(_ value: T?, in query: any Query) async throws -> T {
    try record(.put)
    return try await source.put(value, in: query)
  }

  @discardableResult
  func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try record(.putAll)
    return try await source.putAll(array, in: query)
  }

  func delete(_ query: any Query) async throws {
    try record(.delete)
    try await source.delete(query)
  }

  func deleteAll(_ query: any Query) async throws {
    try record(.deleteAll)
    try await source.deleteAll(query)
  }
}

/// A source over another one whose calls can be made to wait: before they reach the source, or before they return.
final class PausedDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  enum Point: Hashable { case before, after }

  private struct Pause: Hashable {
    let point: Point
    let operation: DataSourceOperation
  }

  private struct State {
    /// How many of the next calls wait.
    var pauses: [Pause: Int] = [:]
    var paused: Set<DataSourceOperation> = []
    /// The number of resumptions.
    var resumptions: [DataSourceOperation: Int] = [:]
  }

  private let source: AnyDataSource<T>
  private let state = LockedValue(State())

  init(over source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>) {
    self.source = AnyDataSource(source)
  }

  /// Makes the next call wait before it reaches the source.
  func pause(before operation: DataSourceOperation) {
    state.withLock { $0.pauses[Pause(point: .before, operation: operation), default: 0] += 1 }
  }

  /// Makes the next call wait before it returns.
  func pause(after operation: DataSourceOperation) {
    state.withLock { $0.pauses[Pause(point: .after, operation: operation), default: 0] += 1 }
  }

  func waitForPaused(_ operation: DataSourceOperation) async {
    while !state.withLock({ $0.paused.contains(operation) }) { await Task.yield() }
  }

  /// Lets all waiting calls of an operation go on.
  func resume(_ operation: DataSourceOperation) {
    state.withLock {
      $0.paused.remove(operation)
      $0.resumptions[operation, default: 0] += 1
    }
  }

  private func run<R>(_ operation: DataSourceOperation, _ call: () async throws -> R) async throws -> R {
    try await waitIfPaused(.before, operation)
    let result = try await call()
    try await waitIfPaused(.after, operation)
    return result
  }

  private func waitIfPaused(_ point: Point, _ operation: DataSourceOperation) async throws {
    let pause = Pause(point: point, operation: operation)
    let resumptions = state.withLock { state -> Int? in
      guard let count = state.pauses[pause], count > 0 else { return nil }
      state.pauses[pause] = count - 1
      state.paused.insert(operation)
      return state.resumptions[operation, default: 0]
    }
    guard let resumptions else { return }
    while state.withLock({ $0.resumptions[operation, default: 0] }) == resumptions {
      try Task.checkCancellation()
      await Task.yield()
    }
  }

  func get(_ query: any Query) async throws -> T { try await run(.get) { try await source.get(query) } }
  func getAll(_ query: any Query) async throws -> [T] { try await run(.getAll) { try await source.getAll(query) } }

  @discardableResult
  func put(_ value: T?, in query: any Query) async throws -> T {
    try await run(.put) { try await source.put(value, in: query) }
  }

  @discardableResult
  func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await run(.putAll) { try await source.putAll(array, in: query) }
  }

  func delete(_ query: any Query) async throws { try await run(.delete) { try await source.delete(query) } }
  func deleteAll(_ query: any Query) async throws { try await run(.deleteAll) { try await source.deleteAll(query) } }
}

/// A key-value source that records which keys are read together.
struct CountedDataSource<T: Sendable>: KeyValueDataSource {
  private let source = InMemoryDataSource<T>()
  private let recorder = Recorder<[String]>()

  var reads: [[String]] { recorder.events }

  func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    recorder.add(keys)
    return try await source.entries(of: keys)
  }

  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] { try await source.entries(in: range) }
  func store(_ entries: [KeyValueEntry<T>]) async throws { try await source.store(entries) }
  func remove(_ keys: [String]) async throws { try await source.remove(keys) }
  func removeAll() async throws { try await source.removeAll() }
}

/// Lets other tasks that can run do so.
func letOthersRun() async {
  for _ in 0..<2_000 { await Task.yield() }
}
