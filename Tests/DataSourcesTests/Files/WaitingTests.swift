import DataSources
import Foundation
import Platform
import TestSupport
import Testing

@testable import DataSources

/// Calls that wait: for a thread, for their turn at a directory, or for another process's lock.
@Suite(.timeLimit(.minutes(5))) struct WaitingTests {
  private let directory: TemporaryFolder
  private let source: DeviceStorageDataSource<Int>

  init() async throws {
    directory = try TemporaryFolder()
    source = DeviceStorageDataSource(directory: directory.url)
    try await source.put(0, forId: "a")
  }

  /// Locks the directory, as another process does, until the lock is released.
  func lockedByOther() throws -> SharedFileLock {
    let lock = try SharedFileLock(directory.file("regular/.lock"), .writing)
    try #require(try lock.tryLock(exclusive: true))
    return lock
  }

  @Test func `calls that wait for a lock don't block other tasks, however many they are`() async throws {
    var lock: SharedFileLock? = try lockedByOther()
    try await withThrowingTaskGroup { group in
      let count = ProcessInfo.processInfo.activeProcessorCount + 8
      for number in 0..<count {
        group.addTask { _ = try await source.put(number, forId: number) }
        group.addTask { _ = try await source.get("a") }
      }
      let other = try TemporaryFolder()
      let others = DeviceStorageDataSource<Int>(directory: other.url)
      for number in 0..<8 { try await others.put(number, forId: number) }
      #expect(try await others.keys().count == 8)
      withExtendedLifetime(lock) {}
      lock = nil
      try await group.waitForAll()
    }
    #expect(try await source.get(0) == 0)
  }

  @Test func `many concurrent calls that block finish on a limited number of threads`() async throws {
    try await withThrowingTaskGroup { group in
      for number in 0..<200 { group.addTask { try await BlockingWork.run { number } } }
      var sum = 0
      for try await number in group { sum += number }
      #expect(sum == 19_900)
    }
  }

  @Test func `a call that is cancelled while it waits ends without the lock`() async throws {
    var lock: SharedFileLock? = try lockedByOther()
    // The first one waits for the other process, the second one for the first.
    let waiting = (1...2).map { number in Task { try await source.put(number, forId: "a") } }
    try await Task.sleep(for: .milliseconds(5))
    for task in waiting.reversed() {
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    withExtendedLifetime(lock) {}
    lock = nil
    #expect(try await source.get("a") == 0)
    try await source.put(3, forId: "a")
  }

  @Test func `a task that is cancelled already changes nothing`() async throws {
    let task = Task {
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      try await source.put(1, forId: "a")
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await source.get("a") == 0)
  }

  @Test func `a call waits for a limited time`() async throws {
    let hasty = DeviceStorageDataSource<Int>(directory: directory.url, lockTimeout: .milliseconds(10))
    var lock: SharedFileLock? = try lockedByOther()
    // The other process is in the way first, then also a call of this one.
    for _ in 0..<2 {
      await #expect { try await hasty.put(1, forId: "a") } throws: { error in
        (error as? DataSourceError)?.kind == .failed && "\(error)".contains("lockTimeout")
      }
    }
    let waiting = Task { try await source.put(2, forId: "a") }
    try await Task.sleep(for: .milliseconds(5))
    await #expect(throws: DataSourceError.failed) { try await hasty.get("a") }
    withExtendedLifetime(lock) {}
    lock = nil
    _ = try await waiting.value
    #expect(try await hasty.get("a") == 2)
  }

  @Test func `a large batch that is cancelled before its plan changes nothing`() async throws {
    let task = Task { try await source.putAll(Array(0..<5_000), forId: Array(0..<5_000)) }
    while !FileManager.default.fileExists(atPath: directory.file("regular/.new-9")) { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try await source.keys() == ["a"])
    #expect(try directory.subpaths().count == 3, "regular, .lock and a's file")
  }
}

@Suite(.timeLimit(.minutes(5))) struct TurnsTests {
  /// Starts tasks that take turns, one after the other, and note their number then.
  private func start(_ counts: [Int], _ turns: Turns, _ order: Recorder<Int>) async throws -> [Task<Void, any Error>] {
    var tasks: [Task<Void, any Error>] = []
    for (number, count) in counts.enumerated() {
      tasks.append(
        Task {
          try await turns.take(count)
          order.add(number)
        })
      try await Task.sleep(for: .milliseconds(2))
    }
    return tasks
  }

  @Test func `turns are taken in the order of arrival`() async throws {
    let (turns, order) = (Turns(count: 3), Recorder<Int>())
    try await turns.take(3)
    let tasks = try await start([1, 3, 1, 1], turns, order)
    turns.giveBack(1)
    try await tasks[0].value
    turns.giveBack(2)
    #expect(order.events == [0])
    turns.giveBack(1)
    try await tasks[1].value
    #expect(order.events == [0, 1])
    turns.giveBack(3)
    for task in tasks { try await task.value }
    #expect(Set(order.events) == [0, 1, 2, 3])
  }

  @Test func `a waiter that gives up lets those behind it go on`() async throws {
    let (turns, order) = (Turns(count: 3), Recorder<Int>())
    try await turns.take(2)
    let tasks = try await start([3, 1], turns, order)
    tasks[0].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[0].value }
    try await tasks[1].value
    turns.giveBack(3)
    try await turns.take(3, within: .seconds(60))
    await #expect(throws: Turns.TimeoutError.self) { try await turns.take(1, within: .milliseconds(1)) }
    turns.giveBack(1)
    try await turns.take(1)
  }
}
