import Testing

@testable import DataSources

@Suite struct SingleFlightTests {
  private let flight = SingleFlight<String, Int>()
  private let gate = Gate()
  private let calls = Recorder<String>()

  /// Starts a caller, and returns once it waits for the call.
  private func caller(_ key: String = "a", isLast count: Int) async -> Task<Int, any Error> {
    let task = Task {
      try await flight.value(of: key) { [calls, gate] in
        calls.add(key)
        try await gate.pass()
        return calls.events.count
      }
    }
    while flight.waiterCount(of: key) < count { await Task.yield() }
    return task
  }

  @Test func `concurrent calls for one key share one execution`() async throws {
    var tasks: [Task<Int, any Error>] = []
    for number in 1...10 { tasks.append(await caller(isLast: number)) }
    gate.open()
    for task in tasks { #expect(try await task.value == 1) }
    #expect(calls.events == ["a"])
    // The next one is a new call.
    #expect(try await caller(isLast: 0).value == 2)
  }

  @Test func `calls for different keys are executed separately`() async throws {
    let a = await caller("a", isLast: 1)
    let b = await caller("b", isLast: 1)
    gate.open()
    #expect(try await a.value + b.value >= 3)
    #expect(calls.events.sorted() == ["a", "b"])
  }

  @Test func `all callers receive the error`() async {
    let tasks = [await caller(isLast: 1), await caller(isLast: 2)]
    gate.open(with: DataSourceError.failed)
    for task in tasks { #expect(await failure { try await task.value } == .failed) }
    #expect(calls.events == ["a"])
  }

  @Test func `a cancelled caller doesn't cancel the others, even if it was the first`() async throws {
    let first = await caller(isLast: 1)
    let second = await caller(isLast: 2)
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    gate.open()
    #expect(try await second.value == 1)
  }

  @Test func `the last caller's cancellation cancels the call`() async throws {
    let tasks = [await caller(isLast: 1), await caller(isLast: 2)]
    for task in tasks { task.cancel() }
    for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    await gate.waitForCancellation()
    // A new caller doesn't get the cancelled call.
    gate.open()
    #expect(try await caller(isLast: 0).value == 2)
  }

  @Test func `a cancelled task makes no call`() async {
    let task = Task {
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      return try await flight.value(of: "a") { 1 }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `a call in the background goes on without callers`() async throws {
    flight.start("a") { [calls, gate] in
      calls.add("background")
      try await gate.pass()
      calls.add("done")
      return 7
    }
    let task = await caller(isLast: 1)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    gate.open()
    while calls.events.count < 2 { await Task.yield() }
    #expect(calls.events == ["background", "done"])
  }

  @Test func `every caller gets an answer, whichever callers are cancelled and when`() async {
    await withTaskGroup { group in
      for number in 0..<2_000 {
        group.addTask {
          let task = Task {
            try await flight.value(of: "\(number % 3)") {
              await Task.yield()
              try Task.checkCancellation()
              return number
            }
          }
          if number % 2 == 0 { task.cancel() }
          let result = await task.result
          // Only those that were cancelled fail.
          if number % 2 == 1 { #expect(throws: Never.self) { try result.get() } }
        }
      }
    }
  }
}

/// A gate that calls wait at until it opens.
final class Gate: Sendable {
  private struct State {
    var result: Result<Void, any Error>?
    var cancellationCount = 0
  }

  private let state = LockedValue(State())

  /// Opens the gate for all calls, with an error that they throw.
  func open(with error: (any Error)? = nil) {
    state.withLock { $0.result = error.map { .failure($0) } ?? .success(()) }
  }

  func close() {
    state.withLock { $0.result = nil }
  }

  func pass() async throws {
    while true {
      if let result = state.withLock({ $0.result }) { return try result.get() }
      guard !Task.isCancelled else {
        state.withLock { $0.cancellationCount += 1 }
        throw CancellationError()
      }
      await Task.yield()
    }
  }

  func waitForCancellation() async {
    while state.withLock({ $0.cancellationCount }) == 0 { await Task.yield() }
  }
}
