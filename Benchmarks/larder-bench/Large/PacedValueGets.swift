import Glibc
import Platform

/// Gets of random values over one connection at a constant rate, one at a time.
struct PacedValueGets<T: Target>: Sendable {
  let address: Address
  var store = "bench"
  let keys: Range<UInt64>
  /// In bytes.
  let valueSize: Int
  /// Gets per second.
  let rate: Int

  /// Puts all values.
  func load() throws {
    var connection = try ValueConnection<T>(to: address, store: store)
    let value = BenchValue.bytes(size: valueSize)
    for key in keys { try connection.put(value, at: key) }
  }

  /// Measures latencies.
  func run(for duration: Duration, seed: UInt64) throws -> Tally {
    var tally = Tally()
    var count = max(1, Int(duration.seconds * Double(rate)))
    try run(seed: seed) {
      count -= 1
      return count >= 0
    } onReply: { start in
      tally.record(since: start, now: Clocks.now())
    }
    tally.flush()
    return tally
  }

  /// - Parameters:
  ///   - goesOn: Called before each get; false ends the run.
  ///   - onReply: Called after each reply with the time from which the latency counts.
  func run(seed: UInt64, while goesOn: () -> Bool, onReply: (UInt64) -> Void = { _ in }) throws {
    var connection = try ValueConnection<T>(to: address, store: store)
    var random = Random(seed: seed)
    var times = PacedTimes(rate: rate)
    while goesOn() {
      let key = keys.lowerBound + random.below(UInt64(keys.count))
      let request = try connection.getRequest(key, valueSize: valueSize)
      let start = times.wait()
      try connection.check(request)
      onReply(start)
    }
  }
}

/// Small gets from a server, alone or beside large ones.
protocol NeighborGets: Sendable {
  /// Puts all values.
  func load() throws

  /// Measures the latencies of small gets.
  func run(seed: UInt64) throws -> Tally

  /// Measures the same while another connection gets large values.
  func runBesideLargeGets(seed: UInt64) throws -> (tally: Tally, largeGetsPerSecond: Double)
}

struct ValueNeighborGets<T: Target>: NeighborGets {
  private let small: PacedValueGets<T>
  private let large: PacedValueGets<T>
  private let duration: Duration
  /// `SCHED_IDLE`: the thread runs only when no other one needs its processor. See sched(7).
  private static var idlePolicy: Int32 { 5 }

  init(_ plan: LargePlan, at address: Address) {
    let smallKeys = 0..<LargePlan.smallKeys
    small = PacedValueGets(address: address, keys: smallKeys, valueSize: LargePlan.smallSize, rate: LargePlan.smallRate)
    large = PacedValueGets(
      address: address, keys: smallKeys.upperBound..<smallKeys.upperBound + LargePlan.neighborKeys,
      valueSize: plan.neighborSize, rate: LargePlan.neighborRate)
    duration = plan.pacedTurn
  }

  func load() throws {
    try small.load()
    try large.load()
  }

  func run(seed: UInt64) throws -> Tally { try small.run(for: duration, seed: seed) }

  func runBesideLargeGets(seed: UInt64) throws -> (tally: Tally, largeGetsPerSecond: Double) {
    let start = Clocks.now()
    let work = BackgroundWork(threads: 1) { next in
      // This thread shares a processor with the one that measures, and must never delay it.
      var priority = sched_param(sched_priority: 0)
      guard unsafe sched_setscheduler(0, Self.idlePolicy, &priority) == 0 else {
        throw BenchError("a thread can't get idle priority")
      }
      try large.run(seed: ~seed, while: next)
    }
    let tally: Tally
    do { tally = try run(seed: seed) } catch {
      _ = try? work.stop()
      throw error
    }
    let seconds = Double(Clocks.now() - start) / 1e9
    // The last one has begun, but it was not sent.
    return (tally, Double(max(0, try work.stop() - 1)) / seconds)
  }
}
