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
        text.add(count, ("operation", operation.map { "\($0)" } ?? "other"), ("outcome", "\(outcome)"))
      }
    }
    text.begin(
      "request_duration_seconds", .histogram,
      "From when a worker was told of a request until its answer was sent, or waited for the disk.")
    text.add(workers.map(\.durations))
    text.begin("wakeups_total", .counter, "How often workers were woken by what came.")
    text.add(sum(.wakeUps))
    text.begin("received_bytes_total", .counter, "Bytes received from clients.")
    text.add(sum(.receivedBytes))
    text.begin("sent_bytes_total", .counter, "Bytes sent to clients.")
    text.add(sum(.sentBytes))
  }

  private func sum(_ sum: WorkerMetrics.Sum) -> UInt64 { workers.reduce(0) { $0 + $1[sum] } }

  private func addConnections(_ text: inout MetricsText) {
    text.begin("connections", .gauge, "Connections that are open.")
    text.add(UInt64(connections.load(ordering: .relaxed)))
    text.begin(
      "connections_accepted_total", .counter, "Connections that were ever taken, those refused at once included.")
    text.add(connectionsAccepted.load(ordering: .relaxed))
    text.begin("output_bytes", .gauge, "Bytes that wait until clients read them.")
    text.add(UInt64(max(0, outputBytes.load(ordering: .relaxed))))
  }

  private func addStores(_ text: inout MetricsText) {
    let now = monotonicMilliseconds()
    var families: [String: [(store: Store, value: UInt64)]] = [:]
    let all = stores.list()
    for store in all {
      let ofMap = store.access { map in map.isDropped ? [] : Self.figures(of: &map, now: now) }
      for figure in ofMap { families[figure.name, default: []].append((store, figure.value)) }
      for figure in store.journal?.figures ?? [] { families[figure.name, default: []].append((store, figure.value)) }
    }
    text.begin("stores", .gauge, "Stores there are.")
    text.add(UInt64(all.count))
    for (name, samples) in families.sorted(by: { $0.key < $1.key }) {
      text.begin(
        "store_\(name)", name.hasSuffix("_total") ? .counter : .gauge,
        "A store's figure \(name), as larder stats shows it.")
      for sample in samples {
        text.add(sample.value, ("store", sample.store.name.text), ("engine", sample.store.engine.rawValue))
      }
    }
    let journals = all.compactMap { store in store.journal.map { (store, $0) } }
    guard !journals.isEmpty else { return }
    text.begin(
      "store_commit_duration_seconds", .histogram,
      "How long it took to write what was committed, until it was on the disk where the store promises that.")
    for (store, journal) in journals { text.add([journal.commitTimes], ("store", store.name.text)) }
    text.begin("store_sync_duration_seconds", .histogram, "How long the disk took to make what was written durable.")
    for (store, journal) in journals {
      if let times = journal.syncTimes { text.add([times], ("store", store.name.text)) }
    }
  }
}
