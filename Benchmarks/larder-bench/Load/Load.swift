import Dispatch
import Foundation
import Platform
import Synchronization

/// A load on one server: threads that start together, each with its own connections.
struct Load<T: Target> {
  private let plan: LoadPlan
  /// One target per store. They differ only in their handshakes.
  private let targets: [T]

  init(_ plan: LoadPlan) {
    self.plan = plan
    targets = plan.stores.map {
      T(store: $0, valueSize: plan.valueSize, keysPerRequest: plan.workload.keysPerRequest)
    }
  }

  /// Runs the plan's workload.
  /// - Parameters:
  ///   - probe: Samples the server before and after the run; nil if its process is unknown.
  ///   - onProgress: Called about ten times per second with the progress so far.
  func run(probe: ServerUsageProbe?, onProgress: (LoadSnapshot) -> Void = { _ in }) throws -> LoadOutcome {
    let (perThread, rest) = plan.connections.quotientAndRemainder(dividingBy: plan.threads)
    let threads = (0..<plan.threads).map { thread in
      let requests = plan.requests.map { $0 / plan.threads + (thread < $0 % plan.threads ? 1 : 0) }
      return ThreadPlan(
        connections: perThread + (thread < rest ? 1 : 0), thread: thread,
        goal: LoadGoal(
          pipeline: plan.pipeline, requests: requests, nanoseconds: requests == nil ? plan.duration.nanoseconds : nil,
          warmUp: plan.warmUp.nanoseconds, timeout: plan.timeout.nanoseconds))
    }
    return try run(threads, probe: probe, onProgress: onProgress)
  }

  /// The number of bytes of values that a connection sends at once when it loads keys, unless one value is larger.
  private static var loadedBytesAtOnce: Int { 1 << 20 }

  /// Writes the keys from `first` on into every store, over a few connections with deep pipelines.
  func loadKeys(from first: Int = 0, onProgress: (LoadSnapshot) -> Void = { _ in }) throws {
    for store in plan.stores {
      var plan = plan
      plan.stores = [store]
      try Load(plan).loadKeysIntoOneStore(from: first, onProgress: onProgress)
    }
  }

  private func loadKeysIntoOneStore(from first: Int, onProgress: (LoadSnapshot) -> Void) throws {
    guard plan.keys > first else { return }
    let goal = LoadGoal(
      pipeline: min(64, max(1, Self.loadedBytesAtOnce / max(1, plan.valueSize))), requests: plan.keys - first,
      nanoseconds: nil, timeout: plan.timeout.nanoseconds, isLoading: true,
      firstLoad: first)
    let outcome = try run([ThreadPlan(connections: 4, thread: 0, goal: goal)], probe: nil, onProgress: onProgress)
    guard !outcome.tally.hasFailures, outcome.tally.answered == plan.keys - first else {
      throw BenchError(
        "loading the keys failed: of \(plan.keys - first) puts, \(outcome.tally.answered) were answered and \(outcome.tally.refusals) refused"
      )
    }
  }

  private struct ThreadPlan: Sendable {
    let connections: Int
    let thread: Int
    let goal: LoadGoal
  }

  private func run(_ threads: [ThreadPlan], probe: ServerUsageProbe?, onProgress: (LoadSnapshot) -> Void) throws
    -> LoadOutcome
  {
    let connected = DispatchSemaphore(value: 0)
    let go = DispatchSemaphore(value: 0)
    let ended = DispatchGroup()
    let results = ThreadResults()
    let progress = threads.map { _ in LoadProgress() }
    for thread in threads {
      ended.enter()
      let progress = progress[thread.thread]
      Thread.detachNewThread { [self] in
        defer { ended.leave() }
        do {
          try plan.processors?.restrictCurrentThread()
          var loop = try makeLoop(thread)
          connected.signal()
          go.wait()
          if !results.hasFailed { results.add(loop.run(progress: progress)) }
        } catch {
          results.fail(error)
          connected.signal()
          go.wait()
        }
      }
    }
    for _ in threads { connected.wait() }
    let before = probe?.sample()
    for _ in threads { go.signal() }
    let start = Clocks.now()
    while ended.wait(timeout: .now() + .milliseconds(100)) == .timedOut {
      onProgress(
        LoadSnapshot(
          seconds: Double(Clocks.now() - start) / 1e9, answered: progress.reduce(0) { $0 + $1.answered },
          failures: progress.reduce(0) { $0 + $1.failures }))
    }
    let after = probe?.sample()
    return LoadOutcome(threads: try results.get(), before: before, after: after)
  }

  private func makeLoop(_ thread: ThreadPlan) throws -> LoadLoop<T> {
    var connections = LoadConnections<T.Session>(capacity: thread.connections)
    let poll = try Poll()
    for index in 0..<thread.connections {
      let connection = try SetupConnection(to: plan.address)
      let session = try targets[index % targets.count].handshake(connection)
      try poll.add(connection.descriptor.number, .reading, token: UInt64(index))
      connections.append(LoadConnection(connection.release(), session: session, pipeline: thread.goal.pipeline))
    }
    let keys = KeyChooser(
      plan.effectiveDistribution, keys: plan.keys, seed: plan.seed, thread: thread.thread, threads: plan.threads,
      unansweredInserts: thread.connections * plan.pipeline)
    let writer = try RequestWriter(targets[0], plan.workload, keys: keys, keyCount: plan.keys)
    let pace =
      thread.goal.isLoading
      ? nil
      : plan.rate.map {
        Pace(rate: $0 / Double(plan.threads), connections: thread.connections)
      }
    return LoadLoop(thread.goal, writer, pace: pace, connections: connections, poll: poll)
  }
}

/// The progress of a load.
struct LoadSnapshot {
  let seconds: Double
  let answered: Int
  let failures: Int
}

/// The outcomes of a load's threads, or the first error.
private final class ThreadResults: Sendable {
  private let state = Mutex((outcomes: [ThreadOutcome](), error: (any Error)?.none))

  var hasFailed: Bool { state.withLock { $0.error != nil } }
  func add(_ outcome: ThreadOutcome) { state.withLock { $0.outcomes.append(outcome) } }
  func fail(_ error: any Error) { state.withLock { $0.error = $0.error ?? error } }

  func get() throws -> [ThreadOutcome] {
    let (outcomes, error) = state.withLock { ($0.outcomes, $0.error) }
    if let error { throw error }
    return outcomes
  }
}
