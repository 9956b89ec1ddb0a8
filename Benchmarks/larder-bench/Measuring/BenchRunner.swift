import Foundation
import Platform

/// The parameters that all families of benchmarks have.
protocol BenchPlan: Sendable {
  /// A plan for rough measurements in a fraction of the time.
  static var quick: Self { get }
  init()

  /// The number of rounds.
  var repeats: Int { get set }
  /// The duration of each turn of a contender.
  var turn: Duration { get set }
  var seed: UInt64 { get set }
  var connections: Int { get }
  var keys: Int { get }
  /// In bytes.
  var valueSize: Int { get }
}

extension BenchPlan {
  var connections: Int { 50 }
  var keys: Int { 200_000 }
  var valueSize: Int { 100 }
  /// The start of each turn, in which latencies are ignored.
  var warmUp: Duration { min(.milliseconds(100), turn / 5) }
}

/// The processors of a machine with more than one.
private struct Processors {
  let generator: ProcessorSet
  let servers: ProcessorSet

  /// Assigns the last processor to the generator and all others to the servers.
  init?(dividing processors: ProcessorSet) {
    guard processors.numbers.count > 1 else { return nil }
    generator = ProcessorSet(processors.numbers.suffix(1))
    servers = ProcessorSet(processors.numbers.dropLast())
  }
}

/// What all families of benchmarks do: starting servers, checking them, loading them, and letting them take turns.
///
/// Processes and threads inherit the processors of the thread that starts them.
final class BenchRunner {
  private let plan: any BenchPlan
  /// The folder of the sockets, whose paths must be short.
  let sockets: TemporaryFolder
  /// The folder of the servers' data.
  let disk: TemporaryFolder
  private let display: LiveProgress
  private let all: ProcessorSet
  private let processors: Processors?
  private let start = Clocks.now()
  /// The number of seeds so far, which makes the random numbers of turns differ.
  private var seedCount: UInt64 = 0

  /// - Parameters:
  ///   - folder: The parent folder of the servers' data; nil for the system's temporary folder.
  ///   - isPinned: Whether the generator and the servers have separate processors, if there are several.
  init(
    _ plan: any BenchPlan, disk folder: String? = nil, isPinned: Bool = false, display: LiveProgress = LiveProgress()
  ) throws {
    self.plan = plan
    self.display = display
    sockets = try TemporaryFolder()
    disk = try TemporaryFolder(in: folder)
    all = try ProcessorSet.ofCurrentThread()
    processors = isPinned ? Processors(dividing: all) : nil
  }

  var isPinned: Bool { processors != nil }

  func nextSeed() -> UInt64 {
    seedCount += 1
    return plan.seed &+ seedCount
  }

  func show(_ text: String) {
    display.show("\(Int(Double(Clocks.now() - start) / 1e9)) s  \(text)")
  }

  // MARK: Processors

  func onServers<R>(_ body: () throws -> R) throws -> R { try on(processors?.servers, body) }
  func onGenerator<R>(_ body: () throws -> R) throws -> R { try on(processors?.generator, body) }
  func onAll<R>(_ body: () throws -> R) throws -> R { try on(all, body) }

  private func on<R>(_ processors: ProcessorSet?, _ body: () throws -> R) throws -> R {
    guard let processors else { return try body() }
    let before = try ProcessorSet.ofCurrentThread()
    try processors.restrictCurrentThread()
    defer { try? before.restrictCurrentThread() }
    return try body()
  }

  // MARK: Servers

  /// Checks a contender on a separate server, so that the written keys do not interfere with measurements.
  /// - Parameter sizes: The sizes of the values, in bytes.
  func check(_ contender: Contender, sizes: [Int] = TargetCheck.sizes, keysPerSize: Int = 10) throws {
    show("checking \(contender.name)")
    let server = try start(contender)
    defer { discard([server]) }
    let check = TargetCheck(address: server.address, sizes: sizes, keysPerSize: keysPerSize)
    do { try check.run(contender.protocolName) } catch {
      throw BenchError("\(contender.name) does not answer correctly: \(error)")
    }
  }

  func start(_ contender: Contender) throws -> RunningServer {
    try RunningServer(
      contender, in: sockets, data: contender.hasData ? disk.makePath(contender.protocolName.rawValue) : nil)
  }

  /// Starts a server and loads the keys of a load.
  func start(_ contender: Contender, loading load: (RunningServer) throws -> LoadPlan) throws -> RunningServer {
    show("loading \(contender.name)")
    let server = try start(contender)
    try load(server).loadKeys()
    return server
  }

  /// Stops servers and removes their data.
  func discard(_ servers: [RunningServer]) {
    for server in servers {
      server.stop()
      if let data = server.data { try? FileManager.default.removeItem(atPath: data) }
    }
  }

  // MARK: Turns

  /// Returns a load with the parameters of the plan, for one turn.
  func load(_ workload: String, _ server: RunningServer) throws -> LoadPlan {
    var load = LoadPlan(
      address: server.address, protocolName: server.contender.protocolName, workload: try Workload(workload))
    load.connections = plan.connections
    load.stores = server.contender.stores
    load.keys = plan.keys
    load.valueSize = plan.valueSize
    load.duration = plan.turn
    load.warmUp = plan.warmUp
    load.processors = processors?.generator
    load.seed = nextSeed()
    return load
  }

  /// - Throws: `BenchError` if a request fails or a key is missing.
  func run(_ load: LoadPlan, _ server: RunningServer) throws -> LoadOutcome {
    let outcome = try load.run(probe: server.probe)
    guard !outcome.tally.hasFailures, outcome.tally.misses == 0 else {
      throw BenchError("\(server.contender.name) failed in \(load.workload.name): \(outcome.tally.failures)")
    }
    return outcome
  }

  /// Lets participants take turns at each work, in rounds that start with a different participant each time.
  /// - Parameters:
  ///   - rounds: The number of rounds; nil for that of the plan.
  ///   - title: Returns what a turn is, for the progress line.
  /// - Returns: What each participant's turns returned, by work and participant.
  func takeTurns<Work, Participant, Turn>(
    at works: [Work], _ participants: [Participant], rounds: Int? = nil, title: (Work, Participant) -> String,
    _ turn: (Work, Participant) throws -> Turn
  ) rethrows -> [[[Turn]]] {
    let rounds = rounds ?? plan.repeats
    var turns = works.map { _ in participants.map { _ in [Turn]() } }
    for round in 0..<rounds {
      for (number, work) in works.enumerated() {
        for index in Array(participants.indices).rotated(by: round) {
          show("round \(round + 1) of \(rounds): \(title(work, participants[index]))")
          turns[number][index].append(try turn(work, participants[index]))
        }
      }
    }
    return turns
  }
}

extension Array {
  /// Returns the elements rotated to the left.
  fileprivate func rotated(by distance: Int) -> Self {
    guard !isEmpty else { return [] }
    let first = distance % count
    return Array(self[first...] + self[..<first])
  }
}
