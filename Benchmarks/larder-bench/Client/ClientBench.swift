import Larder
import Platform
import Synchronization

/// Calls of the client library: one process, one connection, and many tasks that call get one after the other.
struct ClientBench: Sendable {
  let store: RemoteStore
  /// Keys are made beforehand: a caller has them.
  private let keys: [String]

  /// What came of some tasks calling for a while.
  struct Outcome: Sendable {
    let calls: Int
    let seconds: Double
    /// CPU seconds of this whole process.
    let cpuSeconds: Double

    var callsPerSecond: Double { Double(calls) / seconds }
    var cpuMicrosecondsPerCall: Double { cpuSeconds * 1e6 / Double(max(1, calls)) }
  }

  init(_ store: RemoteStore, keyCount: Int, seed: UInt64) {
    self.store = store
    var random = Random(seed: seed)
    keys = (0..<65_536).map { _ in
      String(decoding: BenchKey.bytes(random.below(UInt64(keyCount))), as: UTF8.self)
    }
  }

  /// - Throws: when a call fails or a key is missing.
  func run(tasks: Int, for duration: Duration) async throws -> Outcome {
    let isOver = EndFlag()
    let timer = Task {
      try await Task.sleep(for: duration)
      isOver.set()
    }
    defer { timer.cancel() }
    let cpu = Clocks.processCPU()
    let start = Clocks.now()
    let calls = try await withThrowingTaskGroup(of: Int.self) { group in
      for task in 0..<tasks {
        group.addTask { try await call(from: task &* 7_919, until: isOver) }
      }
      return try await group.reduce(0, +)
    }
    return Outcome(
      calls: calls, seconds: Double(Clocks.now() - start) / 1e9, cpuSeconds: Double(Clocks.processCPU() - cpu) / 1e9)
  }

  /// One task with so many calls, for counting instructions.
  func run(tasks: Int, calls: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<tasks {
        group.addTask {
          for call in 0..<calls / tasks { try await get(task &* 7_919 &+ call) }
        }
      }
      try await group.waitForAll()
    }
  }

  private func call(from first: Int, until isOver: EndFlag) async throws -> Int {
    var count = 0
    while !isOver.isSet {
      try await get(first &+ count)
      count &+= 1
    }
    return count
  }

  @inline(__always)
  private func get(_ number: Int) async throws {
    guard try await store.get(keys[number & 0xFFFF]) != nil else { throw BenchError("a key is missing") }
  }
}

private final class EndFlag: Sendable {
  private let flag = Atomic(false)
  var isSet: Bool { flag.load(ordering: .relaxed) }
  func set() { flag.store(true, ordering: .relaxed) }
}
