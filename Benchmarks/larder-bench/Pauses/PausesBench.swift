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
  private let folder: TemporaryFolder
  /// The requests per second on each connection, which are gets and pings in turn.
  private static let rate = 2_000
  /// The connections with small requests, so that each worker has one.
  private static let neighborCount = 2
  /// How long small requests are measured after an operation, because it may leave work behind, in microseconds.
  private static let trailingTime: UInt32 = 20_000

  init(only: String, repeats: Int, in folder: TemporaryFolder) {
    self.only = only
    self.repeats = repeats
    self.folder = folder
  }

  func run() throws -> [Row] {
    let server = try RunningServer(.larder(engine: "memory"), in: folder)
    var rows: [Row] = []
    for operation in PausingOperation.all where only.isEmpty || operation.name.contains(only) {
      logLine(operation.name)
      let setup = try DocumentConnection(
        to: DocumentAddress(address: server.address, store: server.contender.stores[0]))
      let store = "pauses\(rows.count)"
      try setup.createStore(store)
      rows.append(try measure(operation, DocumentAddress(address: server.address, store: store)))
      try setup.dropStore(store)
    }
    return rows
  }

  private func measure(_ operation: PausingOperation, _ address: DocumentAddress) throws -> Row {
    let connection = try DocumentConnection(to: address)
    let probe = NumberedDocument(0, Array(#"{"probe":true}"#.utf8))
    try connection.put([probe][...])
    for index in operation.indexes { try connection.ensureIndex(index) }
    let request = operation.request(connection)
    let isMeasuring = Atomic(false)
    let latencies = Mutex<[UInt64]>([])
    let neighbors = BackgroundWork(threads: Self.neighborCount) { goesOn in
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
        if isMeasuring.load(ordering: .relaxed) { own.append(Clocks.now() - start) }
      }
      latencies.withLock { $0 += own }
    }
    var durations: [UInt64] = []
    do {
      for _ in 0..<repeats {
        for setup in operation.setup { _ = try connection.exchange(setup(connection), count: 1) }
        if !operation.indexes.isEmpty { try connection.waitForIndexes() }
        usleep(Self.trailingTime)
        isMeasuring.store(true, ordering: .relaxed)
        let start = Clocks.now()
        _ = try connection.exchange(request, count: 1, permitsErrors: operation.mayFail)
        try operation.finish(connection)
        durations.append(Clocks.now() - start)
        usleep(Self.trailingTime)
        isMeasuring.store(false, ordering: .relaxed)
        for cleanup in operation.cleanup { _ = try connection.exchange(cleanup(connection), count: 1) }
      }
    } catch {
      _ = try? neighbors.stop()
      throw error
    }
    try neighbors.stop()
    let sorted = latencies.withLock { $0.sorted() }
    guard let worst = sorted.last else { throw BenchError("nothing was measured beside \(operation.name)") }
    return Row(
      name: operation.name, duration: durations.sorted()[durations.count / 2], worst: worst,
      p999: sorted[min(sorted.count - 1, sorted.count * 999 / 1_000)], count: sorted.count)
  }

  static func table(of rows: [Row]) -> String {
    func milliseconds(_ nanoseconds: UInt64) -> String { String(format: "%.1f", Double(nanoseconds) / 1e6) }
    let lines = rows.map {
      "| \($0.name) | \(milliseconds($0.duration)) | \(milliseconds($0.worst)) | \(milliseconds($0.p999)) | \($0.count) |"
    }
    return """
      | Operation | its duration, ms | worst latency of others, ms | p99.9 of others, ms | their requests |
      |---|---|---|---|---|
      \(lines.joined(separator: "\n"))
      """
  }
}
