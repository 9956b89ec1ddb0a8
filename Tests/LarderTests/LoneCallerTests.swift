import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Larder

/// A caller that makes one call after the other holds no thread while it waits for a reply.
@Suite(.serialized) struct LoneCallerTests {
  /// Runs jobs on a thread of its own, and counts them.
  private final class CountingExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "counting")
    private let count = Atomic<Int>(0)

    var jobs: Int { count.load(ordering: .relaxed) }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async {
        self.count.wrappingAdd(1, ordering: .relaxed)
        unsafe job.runSynchronously(on: self.asUnownedTaskExecutor())
      }
    }
  }

  @Test func `a caller gives its thread back between its request and the reply`() async throws {
    let server = try FakeServer()
    server.put("key", [1])
    let store = try LarderClient(server.address).store("items")
    let executor = CountingExecutor()
    let calls = 500
    let jobs = try await Task(executorPreference: executor) {
      _ = try await store.get("key")
      let before = executor.jobs
      for _ in 0..<calls { _ = try await store.get("key") }
      return executor.jobs - before
    }.value
    // A reply that arrives before the thread that has sent the request goes on ends the call in the same job.
    #expect(jobs > calls / 2)
  }

  @Test func `callers that wait for replies leave all threads to other tasks`() async throws {
    // One caller for each thread of the pool, each with a connection of its own.
    let callers = ProcessInfo.processInfo.activeProcessorCount
    let warmUp = 100
    let gate = Gate()
    let waiting = Atomic<Int>(0)
    let server = try FakeServer { request in
      guard request.operation == .put else { return .answer }
      // When the last caller waits, another task opens the gate, and only then replies are sent.
      if waiting.wrappingAdd(1, ordering: .relaxed).newValue == callers { Task.detached { gate.open() } }
      gate.wait()
      return .answer
    }
    try await withThrowingTaskGroup { group in
      for caller in 0..<callers {
        group.addTask {
          let store = try LarderClient(server.address).with(timeout: .seconds(60)).store("items")
          for _ in 0..<warmUp { _ = try await store.get("key") }
          try await store.put("\(caller)", [])
        }
      }
      try await group.waitForAll()
    }
    #expect(gate.wasOpened)
    #expect(server.count(of: .put) == callers)
  }

  /// Threads wait at it until it is opened, or for so long that the test has failed.
  private final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let hasTimedOut = Atomic<Bool>(false)

    var wasOpened: Bool { !hasTimedOut.load(ordering: .relaxed) }

    func open() { semaphore.signal() }

    func wait() {
      if semaphore.wait(timeout: .now() + .seconds(30)) == .timedOut { hasTimedOut.store(true, ordering: .relaxed) }
      semaphore.signal()
    }
  }
}
