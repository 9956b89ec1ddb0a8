import Dispatch
import Foundation
import Platform
import Synchronization

/// A load on one server: threads with connections of their own, which begin together.
struct Load<T: Target> {
  let plan: LoadPlan
  /// One for each store. They differ in their greetings only.
  let targets: [T]

  init(_ plan: LoadPlan) {
    self.plan = plan
    targets = plan.stores.map {
      T(store: $0, valueSize: plan.valueSize, keysInGetMany: plan.workload.keysInGetMany)
    }
  }

  /// Runs the plan's workload.
  /// - Parameters:
  ///   - probe: looks at the server before and after; nil when its process is not known.
  ///   - watch: called about ten times a second with what has been answered so far.
  func run(probe: ServerProbe?, watch: (LoadSnapshot) -> Void = { _ in }) throws -> LoadOutcome {
    let (perThread, rest) = plan.connections.quotientAndRemainder(dividingBy: plan.threads)
    let shares = (0..<plan.threads).map { thread in
      let requests = plan.requests.map { $0 / plan.threads + (thread < $0 % plan.threads ? 1 : 0) }
      return ThreadPlan(
        connections: perThread + (thread < rest ? 1 : 0), thread: thread,
        goal: LoadGoal(
          pipeline: plan.pipeline, requests: requests, nanoseconds: requests == nil ? plan.duration.nanoseconds : nil,
          warmUp: plan.warmUp.nanoseconds, patience: plan.patience.nanoseconds))
    }
    return try run(shares, probe: probe, watch: watch)
  }

  /// Writes keys from `from` on into every store, over a few connections with many requests under way.
  func loadKeys(from: Int = 0, watch: (LoadSnapshot) -> Void = { _ in }) throws {
    for store in plan.stores {
      var plan = plan
      plan.stores = [store]
      try Load(plan).loadKeysIntoOneStore(from: from, watch: watch)
    }
  }

  private func loadKeysIntoOneStore(from: Int, watch: (LoadSnapshot) -> Void) throws {
    guard plan.keys > from else { return }
    let goal = LoadGoal(
      pipeline: 64, requests: plan.keys - from, nanoseconds: nil, patience: plan.patience.nanoseconds, isLoading: true,
      firstLoad: from)
    let outcome = try run([ThreadPlan(connections: 4, thread: 0, goal: goal)], probe: nil, watch: watch)
    guard !outcome.tally.hasFailures, outcome.tally.answered == plan.keys - from else {
      throw BenchError(
        "loading the keys failed: \(outcome.tally.answered) of \(plan.keys - from) puts were answered, \(outcome.tally.refusals) refused"
      )
    }
  }

  private struct ThreadPlan: Sendable {
    let connections: Int
    let thread: Int
    let goal: LoadGoal
  }

  private func run(_ threads: [ThreadPlan], probe: ServerProbe?, watch: (LoadSnapshot) -> Void) throws -> LoadOutcome {
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
          try plan.processors?.confineThread()
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
      watch(
        LoadSnapshot(
          seconds: Double(Clocks.now() - start) / 1e9, answered: progress.reduce(0) { $0 + $1.answered },
          failures: progress.reduce(0) { $0 + $1.failures }))
    }
    let after = probe?.sample()
    return LoadOutcome(shares: try results.get(), before: before, after: after)
  }

  private func makeLoop(_ thread: ThreadPlan) throws -> LoadLoop<T> {
    var connections = LoadConnections<T.Session>(capacity: thread.connections)
    let poll = try Poll()
    for index in 0..<thread.connections {
      let line = try SetupLine(to: plan.address)
      let session = try targets[index % targets.count].greet(line)
      try poll.add(line.descriptor.number, .reading, token: UInt64(index))
      connections.append(LoadConnection(line.release(), session: session, pipeline: thread.goal.pipeline))
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

/// How far a load has come.
struct LoadSnapshot {
  let seconds: Double
  let answered: Int
  let failures: Int
}

/// What came of a load's threads.
private final class ThreadResults: Sendable {
  private let state = Mutex((shares: [LoadShare](), error: (any Error)?.none))

  var hasFailed: Bool { state.withLock { $0.error != nil } }
  func add(_ share: LoadShare) { state.withLock { $0.shares.append(share) } }
  func fail(_ error: any Error) { state.withLock { $0.error = $0.error ?? error } }

  func get() throws -> [LoadShare] {
    let (shares, error) = state.withLock { ($0.shares, $0.error) }
    if let error { throw error }
    return shares
  }
}
