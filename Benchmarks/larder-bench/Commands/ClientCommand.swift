import ArgumentParser
import Dispatch
import Foundation
import Larder
import Platform
import Synchronization

struct ClientCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "client",
    abstract: """
      Measures the client library: many tasks call get over one connection, one observes documents, and \
      one reads a live cache.
      """,
    discussion: """
      Starts its own larderd. For comparison, as many connections as tasks, up to \(BareClient.maxConnections), call the \
      same server from one thread in C; and, if they are installed, redis-benchmark calls redis-server over one \
      connection.
      """)

  @Option(help: "Call this server instead, such as larder:unix:/run/larder.sock.", transform: TargetArgument.init)
  private var target: TargetArgument?
  @Option(help: "The numbers of concurrent tasks, such as 1,64,1024.", transform: TaskCounts.init)
  private var tasks = TaskCounts(counts: [1, 2, 3, 4, 6, 8, 16, 64, 1_024])
  @Option(help: "How long each number of tasks runs per round. (default: 2s)", transform: DurationArgument.init)
  private var turn: DurationArgument?
  @Option(name: .customLong("repeat"), help: "The number of rounds.")
  private var repeats = 5
  @Option(help: "The number of keys.")
  private var keys = 200_000
  @Option(help: "The size of values, in bytes.")
  private var valueSize = 100
  @Option(help: "Make exactly this many calls, once, and print nothing; for counting instructions.")
  private var calls: Int?
  @Option(help: "The folder for client.md and client.json. (default: only print the table)")
  private var results: String?
  @Flag(help: "Print the result as JSON.")
  private var json = false

  func validate() throws {
    guard target.map({ $0.protocolName == .larder }) ?? true else {
      throw ValidationError("--target takes larder:ADDRESS.")
    }
    guard (1...100).contains(repeats) else { throw ValidationError("--repeat takes 1 to 100.") }
    guard (1...100_000_000).contains(keys) else { throw ValidationError("--keys takes 1 to 100000000.") }
    guard (0...8 << 20).contains(valueSize) else { throw ValidationError("--value-size takes 0 to 8388608.") }
  }

  func run() throws {
    raiseDescriptorLimit()
    do {
      let folder = try TemporaryFolder()
      let signalCleanup = SignalCleanup(folder)
      defer {
        signalCleanup.cancel()
        folder.remove()
      }
      guard let report = try measure(in: folder) else { return }
      if let results {
        try FileManager.default.createDirectory(atPath: results, withIntermediateDirectories: true)
        try report.markdown.write(toFile: "\(results)/client.md", atomically: true, encoding: .utf8)
        try (JSON.encode(report) + "\n").write(toFile: "\(results)/client.json", atomically: true, encoding: .utf8)
      }
      print(json ? try JSON.encode(report) : report.markdown)
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode.failure
    }
  }

  private func measure(in folder: TemporaryFolder) throws -> ClientReport? {
    // With --target, nothing is started, so that this program also runs where larderd is not installed.
    let contenders = target == nil ? try Contender.installed() : []
    let own = try contenders.first { $0.name == Contender.larder }.map { try RunningServer($0, in: folder) }
    guard let address = target?.address ?? own?.address else {
      throw BenchError("there is no server to call; build larderd, or give --target")
    }
    try load(address, .larder)
    let client = try LarderClient("\(address)")
    defer { client.close() }
    let bench = ClientBench(client.store("bench"), keyCount: keys, seed: 1)
    if let calls {
      for count in tasks.counts { try blocking { try await bench.run(tasks: count, calls: calls) } }
      return nil
    }

    let redis =
      RedisBenchmark.isInstalled
      ? try contenders.first { $0.name == "redis" }.map { try RunningServer($0, in: folder) } : nil
    if let redis { try load(redis.address, .resp) }
    let bare = BareClient(address: address, keys: keys)
    // The turns of those that are compared follow each other.
    let rows =
      tasks.counts.flatMap { count -> [ClientRow] in
        [.tasks(count)] + (bare != nil && count <= BareClient.maxConnections ? [.connections(count)] : [])
      } + (redis == nil ? [] : [1, 64].map { .redisBenchmark(pipeline: $0) })
    let turn = turn?.duration ?? .seconds(2)
    var outcomes = rows.map { _ in [ClientBench.Outcome]() }
    let display = LiveProgress()
    defer { display.clear() }
    for round in 0..<repeats {
      for (index, row) in rows.enumerated() {
        display.show("round \(round + 1) of \(repeats): \(row.contender), \(row.work)")
        switch row {
        case .tasks(let count):
          outcomes[index].append(try blocking { try await bench.run(tasks: count, for: turn) })
        case .connections(let count):
          if let bare { outcomes[index].append(try bare.run(connections: count, for: turn)) }
        case .redisBenchmark(let pipeline):
          guard let redis else { continue }
          // About as many requests as fit into a turn, so that startup weighs no more than for the other clients.
          let requests = Int(turn.seconds * (pipeline == 1 ? 50_000 : 1_000_000))
          outcomes[index].append(
            try RedisBenchmark(server: redis, keys: keys).run(pipeline: pipeline, requests: requests))
        }
      }
    }
    var report = ClientReport(rounds: repeats, keys: keys, valueSize: valueSize)
    for (row, outcomes) in zip(rows, outcomes) { report.add(row, outcomes) }
    for count in tasks.counts {
      guard let index = rows.firstIndex(of: .connections(count)) else { continue }
      let ratios = zip(outcomes[index - 1], outcomes[index]).map { $0.callsPerSecond / $1.callsPerSecond }
      report.add(ratios: ratios, tasks: count)
    }
    display.show("observing documents")
    let observation = ObservationBench(client.store("bench"))
    var observed: [ObservationBench.Outcome] = []
    for _ in 0..<repeats { observed.append(try blocking { try await observation.run(changes: 1_000) }) }
    report.add(observed)
    display.show("caching values")
    let cache = try LiveCacheBench(address: address)
    defer { cache.close() }
    var cached: [LiveCacheBench.Outcome] = []
    for _ in 0..<repeats { cached.append(try blocking { try await cache.run(hits: 100_000, changes: 1_000) }) }
    report.add(cached)
    return report
  }

  private func load(_ address: Address, _ protocolName: TargetProtocol) throws {
    var plan = LoadPlan(address: address, protocolName: protocolName, workload: try Workload("get"))
    plan.keys = keys
    plan.valueSize = valueSize
    try plan.loadKeys()
  }

  /// Blocks the main thread, on which no task runs, until `body` returns.
  private func blocking<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
    let result = PendingResult<R>()
    Task.detached {
      do { result.set(.success(try await body())) } catch { result.set(.failure(error)) }
    }
    return try result.get()
  }
}

/// A result for which another thread waits.
private final class PendingResult<R: Sendable>: Sendable {
  private let ready = DispatchSemaphore(value: 0)
  private let result = Mutex<Result<R, any Error>?>(nil)

  func set(_ result: Result<R, any Error>) {
    self.result.withLock { $0 = result }
    ready.signal()
  }

  func get() throws -> R {
    ready.wait()
    guard let result = result.withLock({ $0 }) else {
      preconditionFailure("the semaphore was signaled without a result")
    }
    return try result.get()
  }
}
