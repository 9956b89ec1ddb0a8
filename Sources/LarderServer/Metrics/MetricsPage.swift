import Basics
import Glibc
import Platform
import Storage
import Wire

/// The page `/metrics`, for Prometheus.
extension ServerState {
  /// Locks every store, one after the other.
  func metrics() -> [UInt8] {
    var text = MetricsText()
    text.begin("build_info", .gauge, "Always 1. The label has the version.")
    text.add(1, ("version", softwareVersion))
    text.begin("uptime_seconds", .gauge, "Time since the server started.")
    text.add(seconds: Double(uptimeMilliseconds) / 1_000)
    addRequests(&text)
    addFinds(&text)
    addConnections(&text)
    addMemory(&text)
    addStores(&text)
    ProcessFigures.now?.add(to: &text)
    return text.bytes
  }

  private func addRequests(_ text: inout MetricsText) {
    text.begin("requests_total", .counter, "Requests by operation and outcome.")
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
      Time from a worker's wakeup until it has sent the replies to everything that has arrived, or holds them until \
      commits are durable; all requests of a wakeup count with the same time. Finds, aggregations and changes of \
      matching documents take until their result is known. Operations that were never requested are omitted.
      """)
    for number in 0..<WorkerMetrics.operationCount {
      let durations = workers.map { $0.durations(of: number) }
      guard (0..<DurationHistogram.classCount).contains(where: { index in durations.contains { $0[index] > 0 } }) else {
        continue
      }
      text.add(durations, ("operation", Self.name(ofOperation: number)))
    }
    text.begin("wakeups_total", .counter, "Wakeups of workers that brought requests.")
    text.add(sum(.wakeups))
    text.begin("slow_wakeups_total", .counter, "Wakeups that took long enough for the slow log.")
    text.add(sum(.slowWakeups))
    text.begin("received_bytes_total", .counter, "Bytes received from clients.")
    text.add(sum(.receivedBytes))
    text.begin("sent_bytes_total", .counter, "Bytes sent to clients.")
    text.add(sum(.sentBytes))
  }

  private static func name(ofOperation number: Int) -> String { Operation(rawValue: UInt8(number))?.name ?? "other" }

  private func sum(_ sum: WorkerMetrics.Sum) -> UInt64 { workers.reduce(0) { $0 + $1[sum] } }

  private func addFinds(_ text: inout MetricsText) {
    text.begin(
      "finds", .gauge, "Finds, aggregations and changes of matching documents that have no result yet.")
    text.add(UInt64(jobs.openCount))
    text.begin(
      "finds_max", .gauge,
      "Maximum number of finds, aggregations and changes of matching documents that have no result yet.")
    text.add(UInt64(limits.finds))
    text.begin("find_results_bytes", .gauge, "Memory of results of finds and aggregations that were not sent yet.")
    text.add(UInt64(results.amount))
    text.begin("find_results_max_bytes", .gauge, "Maximum memory of results that were not sent yet.")
    text.add(UInt64(limits.maxResultBytes))
    text.begin(
      "find_plans_total", .counter,
      "Finds, aggregations and changes with a result, by whether indexes limited the work.")
    text.add(sum(.scans), ("plan", "scan"))
    text.add(sum(.indexedJobs), ("plan", "index"))
    text.begin("examined_documents_total", .counter, "Documents that finds, aggregations and changes evaluated.")
    text.add(sum(.examinedDocuments))
    text.begin("examined_keys_total", .counter, "Keys of indexes that finds, aggregations and changes read.")
    text.add(sum(.examinedKeys))
  }

  private func addConnections(_ text: inout MetricsText) {
    text.begin("connections", .gauge, "Open connections.")
    text.add(connectionCount.open)
    text.begin(
      "connections_accepted_total", .counter,
      "All connections that were ever accepted, including those refused at once.")
    text.add(connectionCount.accepted)
    text.begin("connections_refused_total", .counter, "Connections that were refused because there were too many.")
    text.add(connectionCount.refused)
    text.begin("connections_max", .gauge, "Maximum number of connections.")
    text.add(UInt64(limits.connections))
    text.begin("handshakes_open", .gauge, "TLS handshakes under way.")
    text.add(handshakes.open)
    text.begin("handshakes_max", .gauge, "Maximum number of TLS handshakes under way.")
    text.add(UInt64(limits.handshakes))
    text.begin("handshakes_total", .counter, "TLS handshakes that have ended, by how.")
    text.add(handshakes.done, ("result", "done"))
    text.add(handshakes.failed, ("result", "failed"))
    text.add(handshakes.refused, ("result", "refused"))
    let audit = accessControl.auditFigures
    text.begin("audit_events_total", .counter, "Events for the audit.")
    text.add(audit.events)
    text.begin("audit_events_lost_total", .counter, "Events that the audit has lost, because they came too fast.")
    text.add(audit.lost)
    if let seconds = accessControl.policy.certificates.secondsToExpiry(at: Int64(time(nil))) {
      text.begin(
        "certificate_expiry_seconds", .gauge,
        "Time until the first of the server's certificates and revocation lists expires.")
      text.add(seconds)
    }
    text.begin(
      "input_buffer_bytes", .gauge,
      "Memory for requests that are incomplete, or wait until their client reads its replies.")
    text.add(buffers.inboxBytes)
    text.begin("output_buffer_bytes", .gauge, "Bytes of replies that wait until clients read them.")
    text.add(buffers.outboxBytes)
  }

  private func addMemory(_ text: inout MetricsText) {
    text.begin(
      "memory_bytes", .gauge,
      """
      Resident memory by use. The parts add up to about process_resident_memory_bytes; the heap is everything that \
      the other parts don't count.
      """)
    for part in MemoryUse(self).parts { text.add(UInt64(part.bytes), ("part", part.name)) }
    guard let limit = limits.memoryLimit else { return }
    text.begin("memory_limit_bytes", .gauge, "Maximum resident memory of the process.")
    text.add(UInt64(limit.bytes))
  }

  private func addStores(_ text: inout MetricsText) {
    let now = monotonicMilliseconds()
    var families: [String: [(store: Store, value: UInt64)]] = [:]
    let all = stores.list()
    for store in all {
      for figure in Self.mapFigures(of: store, now: now)?.figures ?? [] {
        families[figure.name, default: []].append((store, figure.value))
      }
      for figure in store.fileFigures {
        families[figure.name, default: []].append((store, figure.value))
      }
    }
    text.begin("stores", .gauge, "Number of stores that are served.")
    text.add(UInt64(all.count))
    text.begin(
      "stores_stopped", .gauge, "Number of stores that were stopped because a replicated store has their name.")
    text.add(UInt64(stores.stoppedNames.count))
    let damaged = stores.damagedNames
    text.begin("stores_damaged", .gauge, "Number of stores that are damaged and not served.")
    text.add(UInt64(damaged.count))
    if !damaged.isEmpty {
      text.begin("store_damaged", .gauge, "Always 1. The label has the name of a store that is damaged and not served.")
      for name in damaged { text.add(1, ("store", name.text)) }
    }
    text.begin(
      "cluster_unavailable", .gauge, "1 if a database of replicated stores does not respond as it has to, otherwise 0.")
    text.add(cluster.withLock { $0.failure } == nil ? 0 : 1)
    for (name, samples) in families.sorted(by: { $0.key < $1.key }) {
      text.begin(
        "store_\(name)", name.hasSuffix("_total") ? .counter : .gauge, StoreFigureHelp.text(name))
      for sample in samples {
        text.add(sample.value, ("store", sample.store.name.text), ("engine", sample.store.engine.name))
      }
    }
    let commitWriters = all.compactMap { store in store.commitWriter.map { (store, $0) } }
    guard !commitWriters.isEmpty else { return }
    text.begin(
      "store_commit_duration_seconds", .histogram,
      "Time to write a commit and, where the store promises it, to make it durable.")
    for (store, commitWriter) in commitWriters {
      text.add([commitWriter.commitTimes], ("store", store.name.text), ("engine", store.engine.name))
    }
    text.begin("store_sync_duration_seconds", .histogram, "Time that the disk took to make writes durable.")
    for (store, commitWriter) in commitWriters {
      if let times = commitWriter.syncTimes {
        text.add([times], ("store", store.name.text), ("engine", store.engine.name))
      }
    }
  }
}

/// A sentence about each figure of a store. `Protocol/wire.md` §6.1 says more about them.
private enum StoreFigureHelp {
  static func text(_ name: String) -> String {
    texts[name] ?? "The statistic \(name) of a store, as larder stats shows it."
  }

  private static let texts = [
    "entries": "Number of entries.",
    "revision": "The store's revision, its counter of requests that changed it.",
    "written_total": "Entries that clients wrote or deleted.",
    "key_bytes": "Total size of the keys.",
    "value_bytes": "Total size of the values.",
    "memory_bytes": "Memory that the store uses for its entries.",
    "memory_records_bytes": "Memory of entries, with the free space between them.",
    "memory_hash_bytes": "Memory of the hash index.",
    "memory_order_bytes": "Memory of the order of the keys.",
    "memory_indexes_bytes": "Memory of the indexes of documents.",
    "memory_expiry_bytes": "Memory of the queue of entries that expire.",
    "memory_snapshots_bytes": "Memory of entries that only open reply streams see.",
    "memory_changes_bytes": "Memory of changes not yet delivered or written.",
    "values_on_disk": "Values that are read from the disk on demand.",
    "values_on_disk_bytes": "Total size of the values that are read from the disk on demand.",
    "expiring": "Entries with an expiry.",
    "expired_total": "Entries that were removed because they expired.",
    "snapshots": "Snapshots that open reply streams hold.",
    "snapshots_ended_total": "Snapshots that were ended because snapshots exceeded their memory limit.",
    "watches": "Watches of the store.",
    "limit_bytes": "Memory limit of the entries.",
    "limited_bytes": "Memory that counts toward the limit.",
    "evicted_total": "Entries that were evicted to make room for others.",
    "durable_revision": "Newest revision that has been written to the store's files.",
    "read_only": "1 if the store's files have failed and it accepts no writes, otherwise 0.",
    "engine_unavailable": "1 if the store accepts no writes until what keeps it is available again, otherwise 0.",
    "indexes_damaged": "1 if the definitions of the store's indexes were damaged, so that it has none, otherwise 0.",
    "log_bytes": "Size of the log.",
    "log_live_bytes": "Approximate size of the live records in the log.",
    "log_dead_bytes": "Size of the dead records in the log, which compactions can free.",
    "log_segments": "Segments of the log.",
    "log_room_bytes": "Bytes that can be written without allocating more disk space.",
    "log_written_bytes_total": "Bytes written to the log, including by compactions.",
    "log_compaction_bytes_total": "Bytes written by compactions.",
    "log_compactions_total": "Completed compactions.",
    "log_syncs_total": "Calls that made writes durable.",
    "log_cut_bytes": "Size of the incomplete end of the log that was truncated when the store was opened.",
    "directory_files": "Entries that have a file.",
    "directory_files_waiting": "Entries whose files have not been written yet.",
    "directory_journal_bytes": "Size of the frames in the journals whose entries may not have files yet.",
    "directory_journal_capacity_bytes": "Size of the journals' files.",
    "replicated_position": "Position of the last commit in the shared log.",
    "replicated_log_bytes": "Size of the commits since the newest snapshot.",
    "replicated_written_bytes_total": "Bytes of commits appended to the shared log.",
    "replicated_snapshots_total": "Snapshots written to the shared log by the store's leader.",
    "replicated_value_reads_total": "Reads of large values from the database.",
  ]
}

/// Metrics in the Prometheus text format, version 0.0.4. Names are given without their prefix.
struct MetricsText {
  private(set) var bytes: [UInt8] = []
  private var family = ""

  enum Kind: String {
    case counter, gauge, histogram
  }

  /// Begins a family of samples.
  mutating func begin(_ name: String, _ kind: Kind, _ help: String, prefix: String = "larder_") {
    family = prefix + name
    append("# HELP \(family) \(help)\n# TYPE \(family) \(kind.rawValue)\n")
  }

  mutating func add(_ value: UInt64, _ labels: (String, String)...) {
    addSample("\(value)", suffix: "", labels)
  }

  mutating func add(seconds: Double, _ labels: (String, String)...) {
    addSample("\(seconds)", suffix: "", labels)
  }

  /// Adds the sum of several histograms.
  mutating func add(_ histograms: [DurationHistogram], _ labels: (String, String)...) {
    var count: UInt64 = 0
    for index in 0..<DurationHistogram.classCount {
      count += histograms.reduce(0) { $0 + $1[index] }
      let bound = DurationHistogram.bound(index).map { "\(Double($0) / 1e9)" } ?? "+Inf"
      addSample("\(count)", suffix: "_bucket", labels + [("le", bound)])
    }
    addSample("\(Double(histograms.reduce(0) { $0 + $1.sumNanoseconds }) / 1e9)", suffix: "_sum", labels)
    addSample("\(count)", suffix: "_count", labels)
  }

  private mutating func addSample(_ value: String, suffix: String, _ labels: [(String, String)]) {
    append(family + suffix)
    for (index, label) in labels.enumerated() {
      append("\(index == 0 ? "{" : ",")\(label.0)=\"")
      for byte in label.1.utf8 {
        switch byte {
        case UInt8(ascii: "\\"): append(#"\\"#)
        case UInt8(ascii: "\""): append(#"\""#)
        case UInt8(ascii: "\n"): append(#"\n"#)
        default: bytes.append(byte)
        }
      }
      append("\"")
    }
    append(labels.isEmpty ? " \(value)\n" : "} \(value)\n")
  }

  private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}
