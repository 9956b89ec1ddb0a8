import Foundation
import Platform
import Synchronization
import Wire

/// Measures the latency of small requests while another client executes operations at their limits.
struct PausesBench {
  /// The goal for the 99.9th percentile, in nanoseconds.
  static let goal: UInt64 = 5_000_000

  /// What was measured beside one operation, in nanoseconds.
  struct Row {
    let name: String
    /// The median of the operation's durations.
    let duration: UInt64
    let worst: UInt64
    let p999: UInt64
    let count: Int
  }

  private let only: String
  private let repeats: Int
  /// How many times an operation is measured that misses the goal, because other work on the machine may be the cause.
  private let maxTries: Int
  private let folder: TemporaryFolder
  /// The requests per second on each connection, which are gets and pings in turn.
  private static let rate = 2_000
  /// The connections with small requests, so that each worker has one.
  private static let neighborCount = 2
  /// How long small requests are measured after an operation, because it may leave work behind, in microseconds.
  private static let trailingTime: UInt32 = 20_000
  /// An operation is executed again until there are so many latencies, which a 99.9th percentile takes, or for so long, in
  /// nanoseconds.
  private static let minLatencyCount = 5_000
  private static let maxTime: UInt64 = 15_000_000_000

  /// What the threads of a measurement share. Latencies and durations are in nanoseconds.
  private final class Measurement: Sendable {
    let isRunning = Atomic(false)
    let count = Atomic(0)
    let latencies = Mutex<[UInt64]>([])
    let durations = Mutex<[UInt64]>([])
  }

  init(only: String, repeats: Int, maxTries: Int, in folder: TemporaryFolder) {
    self.only = only
    self.repeats = repeats
    self.maxTries = maxTries
    self.folder = folder
  }

  func run() throws -> [Row] {
    let server = try RunningServer(.larder(engine: "memory"), in: folder)
    var rows: [Row] = []
    for operation in PausingOperation.all where only.isEmpty || operation.name.contains(only) {
      var row = try measureInNewStore(operation, of: server)
      var tries = 1
      while row.p999 > Self.goal, tries < maxTries {
        row = try measureInNewStore(operation, of: server)
        tries += 1
      }
      rows.append(row)
    }
    return rows
  }

  private func measureInNewStore(_ operation: PausingOperation, of server: RunningServer) throws -> Row {
    logLine(operation.name)
    let setup = try DocumentConnection(
      to: DocumentAddress(address: server.address, store: server.contender.stores[0]))
    let store = "pauses"
    try setup.createStore(store)
    let row = try measure(operation, DocumentAddress(address: server.address, store: store))
    try setup.dropStore(store)
    return row
  }

  private func measure(_ operation: PausingOperation, _ address: DocumentAddress) throws -> Row {
    let probe = NumberedDocument(0, Array(#"{"probe":true}"#.utf8))
    do {
      let connection = try DocumentConnection(to: address)
      try connection.put([probe][...])
      for index in operation.indexes { try connection.ensureIndex(index) }
    }
    let measurement = Measurement()
    let neighbors = BackgroundWork(threads: Self.neighborCount) { goesOn in
      TimeSlice.request(isShort: true)
      let neighbor = try DocumentConnection(to: address)
      let (get, ping) = (neighbor.getRequest(probe), neighbor.pingRequest)
      var times = PacedTimes(rate: Self.rate)
      var own: [UInt64] = []
      var number = 0
      while goesOn() {
        number += 1
        let start = times.wait()
        // The store is empty after some operations.
        _ = try neighbor.exchange(number % 2 == 0 ? ping : get, count: 1, permitsErrors: true)
        if measurement.isRunning.load(ordering: .relaxed) {
          own.append(Clocks.now() - start)
          measurement.count.add(1, ordering: .relaxed)
        }
      }
      measurement.latencies.withLock { $0 += own }
    }
    let repeats = repeats
    let execution = BackgroundWork(threads: 1) { _ in
      // Its own work is not to delay the others.
      setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
      try Self.execute(operation, address, repeats, measurement)
    }
    let executed = Result { try execution.stop() }
    try neighbors.stop()
    _ = try executed.get()
    let sorted = measurement.latencies.withLock { $0.sorted() }
    let durations = measurement.durations.withLock { $0.sorted() }
    guard let worst = sorted.last else { throw BenchError("nothing was measured beside \(operation.name)") }
    return Row(
      name: operation.name, duration: durations[durations.count / 2], worst: worst,
      p999: sorted[min(sorted.count - 1, sorted.count * 999 / 1_000)], count: sorted.count)
  }

  /// Executes an operation until enough was measured.
  private static func execute(
    _ operation: PausingOperation, _ address: DocumentAddress, _ repeats: Int, _ measurement: Measurement
  ) throws {
    let connection = try DocumentConnection(to: address)
    let request = operation.request(connection)
    let end = Clocks.now() + maxTime
    var number = 0
    while number < repeats
      || measurement.count.load(ordering: .relaxed) < minLatencyCount && Clocks.now() < end
    {
      number += 1
      for setup in operation.setup { _ = try connection.exchange(setup(connection), count: 1) }
      if !operation.indexes.isEmpty { try connection.waitForIndexes() }
      usleep(trailingTime)
      measurement.isRunning.store(true, ordering: .relaxed)
      let start = Clocks.now()
      _ = try connection.exchange(request, count: 1, permitsErrors: operation.mayFail)
      try operation.finish(connection)
      measurement.durations.withLock { $0.append(Clocks.now() - start) }
      usleep(trailingTime)
      measurement.isRunning.store(false, ordering: .relaxed)
      for cleanup in operation.cleanup { _ = try connection.exchange(cleanup(connection), count: 1) }
    }
  }

  static func table(of rows: [Row]) -> String {
    func milliseconds(_ nanoseconds: UInt64) -> String { String(format: "%.1f", Double(nanoseconds) / 1e6) }
    let lines = rows.map {
      "| \($0.name) | \(milliseconds($0.duration)) | \(milliseconds($0.worst)) | \(milliseconds($0.p999)) | \($0.count) |"
    }
    return """
      | LoadOperation | its duration, ms | worst latency of others, ms | p99.9 of others, ms | their requests |
      |---|---|---|---|---|
      \(lines.joined(separator: "\n"))
      """
  }
}
