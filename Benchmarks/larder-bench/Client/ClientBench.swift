import Foundation
import Glibc
import Larder
import Platform
import Synchronization

/// A benchmark of the client library: many tasks that call get over one connection.
struct ClientBench: Sendable {
  private let store: RemoteStore
  /// Keys drawn in advance, because a caller has its key.
  private let keys: [String]

  /// The result of one turn.
  struct Outcome: Sendable {
    private let calls: Int
    private let seconds: Double
    private let cpuSeconds: Double

    /// - Parameter cpuSeconds: The CPU time of the whole process, in seconds.
    init(calls: Int, seconds: Double, cpuSeconds: Double) {
      self.calls = calls
      self.seconds = seconds
      self.cpuSeconds = cpuSeconds
    }

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

  /// Calls get from concurrent tasks for a duration.
  /// - Throws: `LarderError` if a call fails, `BenchError` if a key is missing.
  func run(tasks: Int, for duration: Duration) async throws -> Outcome {
    let stopFlag = StopFlag()
    let timer = Task {
      try await Task.sleep(for: duration)
      stopFlag.set()
    }
    defer { timer.cancel() }
    let cpu = Clocks.processCPU()
    let start = Clocks.now()
    let calls = try await withThrowingTaskGroup(of: Int.self) { group in
      for task in 0..<tasks {
        group.addTask { try await call(from: task &* 7_919, until: stopFlag) }
      }
      return try await group.reduce(0, +)
    }
    return Outcome(
      calls: calls, seconds: Double(Clocks.now() - start) / 1e9, cpuSeconds: Double(Clocks.processCPU() - cpu) / 1e9)
  }

  /// Makes a fixed number of calls from concurrent tasks, for counting instructions.
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

  private func call(from first: Int, until stopFlag: StopFlag) async throws -> Int {
    var count = 0
    while !stopFlag.isSet {
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

private final class StopFlag: Sendable {
  private let flag = Atomic(false)
  var isSet: Bool { flag.load(ordering: .relaxed) }
  func set() { flag.store(true, ordering: .relaxed) }
}

/// A run of bench-gets, the least that a client of the same server does: as many connections as there would be tasks,
/// served by one thread in C.
struct BareClient {
  private let path: String
  private let keys: Int
  static let program = "bench-gets"
  /// The maximum number of connections that calls of the library are compared with.
  static let maxConnections = 64

  /// Returns nil if the program is not in this program's folder, or the server has no Unix socket.
  init?(address: Address, keys: Int) {
    guard case .unix(let path) = address, Programs.find(Self.program) != nil else { return nil }
    self.path = path
    self.keys = keys
  }

  func run(connections: Int, for duration: Duration) throws -> ClientBench.Outcome {
    let milliseconds = max(1, Int(duration / .milliseconds(1)))
    let output = Programs.output(Self.program, [path, "\(connections)", "\(milliseconds)", "\(keys)"])
    let fields = (output ?? "").split(separator: " ").compactMap { Double($0) }
    guard fields.count == 3, fields[1] > 0 else { throw BenchError("\(Self.program) printed no figures") }
    return ClientBench.Outcome(calls: Int(fields[0]), seconds: fields[1], cpuSeconds: fields[2])
  }
}

/// A run of redis-benchmark with one connection: the same calls from a client in C.
struct RedisBenchmark {
  private let server: RunningServer
  private let keys: Int

  init(server: RunningServer, keys: Int) {
    self.server = server
    self.keys = keys
  }

  static var isInstalled: Bool { Programs.find("redis-benchmark") != nil }

  /// Gets random keys, which have the same names as those that the load loop writes.
  func run(pipeline: Int, requests: Int) throws -> ClientBench.Outcome {
    guard case .unix(let path) = server.address else { throw BenchError("the server has no Unix socket") }
    let before = Self.cpuOfChildren()
    let output = Programs.output(
      "redis-benchmark",
      ["-s", path, "-c", "1", "-P", "\(pipeline)", "-t", "get", "-n", "\(requests)", "-r", "\(keys)", "--csv"])
    let cpu = Self.cpuOfChildren() - before
    let line = output?.split(separator: "\n").last { $0.hasPrefix("\"GET\"") }
    guard let field = line?.split(separator: ",").dropFirst().first, let rate = Double(field.filter { $0 != "\"" }),
      rate > 0
    else { throw BenchError("redis-benchmark printed no rate") }
    return ClientBench.Outcome(calls: requests, seconds: Double(requests) / rate, cpuSeconds: cpu)
  }

  /// Returns the CPU time of children that have exited, which do not include the server.
  private static func cpuOfChildren() -> Double {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
    let times = [usage.ru_utime, usage.ru_stime]
    return times.reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) * 1e-6 }
  }
}
