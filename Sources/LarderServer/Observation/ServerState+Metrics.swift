import Basics
import Platform
import Storage
import Wire

/// Everything that the server has to say of itself, for Prometheus.
extension ServerState {
  /// Takes every store's lock in turn.
  func metrics() -> [UInt8] {
    var text = MetricsText()
    text.begin("build_info", .gauge, "Always 1; the version is in the label.")
    text.add(1, ("version", softwareVersion))
    text.begin("uptime_seconds", .gauge, "How long the server has run.")
    text.add(seconds: Double(uptimeMilliseconds) / 1_000)
    addRequests(&text)
    addConnections(&text)
    addStores(&text)
    ProcessFigures.now?.add(to: &text)
    return text.bytes
  }

  private func addRequests(_ text: inout MetricsText) {
    text.begin("requests_total", .counter, "Requests by operation, and by what the client was told of their outcome.")
    for number in 0..<WorkerMetrics.operationCount {
      let operation = Operation(rawValue: UInt8(number))
      for outcome in [Outcome.done, .notExecuted, .rejected, .unknown] {
        let count = workers.reduce(0) { $0 + $1.requests(number, outcome) }
        guard count > 0 || (operation != nil && outcome == .done) else { continue }
        text.add(count, ("operation", Self.name(ofOperation: number)), ("outcome", "\(outcome)"))
      }
    }
    text.begin(
      "request_duration_seconds", .histogram,
      """
      From when a worker was woken until it had sent the answers to all that had come, or left them waiting for the disk; every request of \
      a wake-up counts with the same time. Operations that were never asked for are left out.
      """)
    for number in 0..<WorkerMetrics.operationCount {
      let durations = workers.map { $0.durations(of: number) }
      guard (0..<DurationHistogram.classCount).contains(where: { index in durations.contains { $0[index] > 0 } }) else {
        continue
      }
      text.add(durations, ("operation", Self.name(ofOperation: number)))
    }
    text.begin("wakeups_total", .counter, "How often workers were woken by requests.")
    text.add(sum(.wakeUps))
    text.begin("slow_wakeups_total", .counter, "How often that took so long that it was put into the slow log.")
    text.add(sum(.slowWakeUps))
    text.begin("received_bytes_total", .counter, "Bytes received from clients.")
    text.add(sum(.receivedBytes))
    text.begin("sent_bytes_total", .counter, "Bytes sent to clients.")
    text.add(sum(.sentBytes))
  }

  private static func name(ofOperation number: Int) -> String { Operation(rawValue: UInt8(number))?.name ?? "other" }

  private func sum(_ sum: WorkerMetrics.Sum) -> UInt64 { workers.reduce(0) { $0 + $1[sum] } }

  private func addConnections(_ text: inout MetricsText) {
    text.begin("connections", .gauge, "Connections that are open.")
    text.add(UInt64(connections.load(ordering: .relaxed)))
    text.begin(
      "connections_accepted_total", .counter, "Connections that were ever taken, those refused at once included.")
    text.add(connectionsAccepted.load(ordering: .relaxed))
    text.begin("connections_refused_total", .counter, "Connections that were refused because there were too many.")
    text.add(connectionsRefused.load(ordering: .relaxed))
    text.begin("connections_max", .gauge, "Connections that there can be.")
    text.add(UInt64(limits.connections))
    text.begin(
      "input_buffer_bytes", .gauge,
      "Memory for requests that have not come whole, or wait until their client reads its answers.")
    text.add(UInt64(max(0, inputBytes.load(ordering: .relaxed))))
    text.begin("output_buffer_bytes", .gauge, "Bytes of answers that wait until clients read them.")
    text.add(UInt64(max(0, outputBytes.load(ordering: .relaxed))))
  }

  private func addStores(_ text: inout MetricsText) {
    let now = monotonicMilliseconds()
    var families: [String: [(store: Store, value: UInt64)]] = [:]
    let all = stores.list()
    for store in all {
      let ofMap = store.access { map in map.isDropped ? [] : Self.figures(of: &map, now: now) }
      for figure in ofMap { families[figure.name, default: []].append((store, figure.value)) }
      for figure in store.commitWriter?.figures ?? [] {
        families[figure.name, default: []].append((store, figure.value))
      }
    }
    text.begin("stores", .gauge, "Stores there are.")
    text.add(UInt64(all.count))
    for (name, samples) in families.sorted(by: { $0.key < $1.key }) {
      text.begin(
        "store_\(name)", name.hasSuffix("_total") ? .counter : .gauge, StoreFigureHelp.text(name))
      for sample in samples {
        text.add(sample.value, ("store", sample.store.name.text), ("engine", sample.store.engine.rawValue))
      }
    }
    let commitWriters = all.compactMap { store in store.commitWriter.map { (store, $0) } }
    guard !commitWriters.isEmpty else { return }
    text.begin(
      "store_commit_duration_seconds", .histogram,
      "How long it took to write what was committed, until it was on the disk where the store promises that.")
    for (store, commitWriter) in commitWriters {
      text.add([commitWriter.commitTimes], ("store", store.name.text), ("engine", store.engine.rawValue))
    }
    text.begin("store_sync_duration_seconds", .histogram, "How long the disk took to make what was written durable.")
    for (store, commitWriter) in commitWriters {
      if let times = commitWriter.syncTimes {
        text.add([times], ("store", store.name.text), ("engine", store.engine.rawValue))
      }
    }
  }
}
