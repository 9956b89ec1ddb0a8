/// The page that `larder stats --watch` shows. A plain value: statistics go in, lines come out.
struct StatsPage {
  /// The statistics of a server and its stores at one time.
  struct Sample {
    /// The time of a monotonic clock, in seconds.
    let time: Double
    let server: [String: UInt64]
    let stores: [StoreSample]
  }

  struct StoreSample {
    let name: String
    let engine: String
    let statistics: [String: UInt64]
  }

  private static let sparklineLevels = Array("▁▂▃▄▅▆▇█")
  static let maxRateCount = 60
  /// Limits the rates that a malicious server can cause, so that they fit an integer.
  private static let maxRate = 1e15

  private let address: String
  private var latest: Sample?
  private var previous: Sample?
  /// The requests per second between consecutive samples.
  private var rates: [Double] = []
  /// Why there is no newer sample, if there is none.
  private var failure: String?

  init(address: String) {
    self.address = address
  }

  mutating func add(_ sample: Sample) {
    // A restarted server counts from 0 again.
    let isSameProcess = latest.map {
      $0.server["uptime_milliseconds", default: 0] <= sample.server["uptime_milliseconds", default: 0]
    }
    previous = isSameProcess == true ? latest : nil
    latest = sample
    failure = nil
    if let rate = rate("requests_total") { rates = rates.suffix(Self.maxRateCount - 1) + [rate] }
  }

  mutating func add(failure: String) { self.failure = failure }

  func lines(width: Int = Terminal.width, height: Int) -> [String] {
    guard let latest else { return ["larderd at \(address)", failure ?? "…"] }
    let server = latest.server
    var lines = [
      "larderd at \(address), up \(HumanReadable.time(seconds: server["uptime_milliseconds", default: 0] / 1_000))"
    ]
    if let failure { lines.append("(!) \(failure)") }
    if server["cluster_unavailable", default: 0] > 0 {
      lines.append("(!) a database of replicated stores does not respond as it has to: see the server's log")
    }
    if server["stores_damaged", default: 0] > 0 { lines.append("(!) damaged stores are not served: see larder stores") }
    let requests = rate("requests_total").map { "\(HumanReadable.number(Int($0)))/s" } ?? "–"
    let label = "requests     \(Self.pad(requests, 14)) "
    lines.append(label + Self.sparkline(rates.suffix(max(0, width - label.count))))
    if server["request_p50_nanoseconds", default: 0] > 0 {
      let names = [
        ("p50", "request_p50_nanoseconds"), ("p99", "request_p99_nanoseconds"), ("p99.9", "request_p999_nanoseconds"),
      ]
      let latencies = names.map { "\($0.0) \(HumanReadable.duration(nanoseconds: server[$0.1, default: 0]))" }
      lines += Self.lines("latency      ", latencies, width: width)
    }
    let traffic = ["received", "sent"].map { "\($0) \(bytesRate("\($0)_bytes_total"))" }
    let waiting = "waiting \(HumanReadable.bytes(server["output_bytes", default: 0]))"
    lines += Self.lines("traffic      ", traffic + [waiting], width: width)
    let memory = "store memory \(HumanReadable.bytes(server["memory_bytes", default: 0]))"
    lines += Self.lines("connections  ", ["\(server["connections", default: 0])", memory], width: width)
    lines.append("")
    let maxLineCount = height - lines.count - 2
    return lines + storeLines(latest.stores, width: width, maxLineCount: maxLineCount) + ["", AlternateScreen.hint]
  }

  /// Returns figures after a label, on as many lines as they need.
  private static func lines(_ label: String, _ figures: [String], width: Int) -> [String] {
    var lines = [label + figures[0]]
    for figure in figures.dropFirst() {
      let line = lines[lines.count - 1] + "   " + figure
      if line.count > width {
        lines.append(pad("", label.count) + figure)
      } else {
        lines[lines.count - 1] = line
      }
    }
    return lines
  }

  private func storeLines(_ stores: [StoreSample], width: Int, maxLineCount: Int) -> [String] {
    func isPresent(_ name: String) -> Bool { stores.contains { $0.statistics[name] != nil } }
    let (haveLimits, haveLogs) = (isPresent("limit_bytes"), isPresent("log_bytes"))
    // A terminal is narrow, so omit columns that would be empty.
    var table = Table(
      header: ["STORE", "ENGINE", "ENTRIES", "WRITES/S", "WATCHES", "MEMORY"]
        + (haveLimits ? ["LIMIT", "EVICTED/S"] : [])
        + (haveLogs ? ["LOG", "DEAD"] : []),
      omissible: ["WATCHES", "DEAD", "ENGINE", "LIMIT", "EVICTED/S", "LOG", "MEMORY"])
    for store in stores {
      let statistics = store.statistics
      func bytes(_ name: String) -> String { statistics[name].map { HumanReadable.bytes($0) } ?? "–" }
      func rate(_ name: String) -> String { self.rate(name, of: store).map { "\(Int($0))" } ?? "–" }
      let writes = rate(Self.writes(in: statistics))
      var cells = [store.name, store.engine, "\(statistics["entries", default: 0])", writes]
      cells += ["\(statistics["watches", default: 0])", bytes("memory_bytes")]
      if haveLimits { cells += [bytes("limit_bytes"), rate("evicted_total")] }
      if haveLogs { cells += [bytes("log_bytes"), bytes("log_dead_bytes")] }
      table.add(cells)
    }
    let lines = table.text(width: width).split(separator: "\n").map(String.init)
    guard lines.count > max(2, maxLineCount) else { return lines }
    let shown = max(2, maxLineCount) - 1
    return lines.prefix(shown) + ["… and \(lines.count - shown) more"]
  }

  /// Returns the name of the statistic that counts the writes of a store. An older server counts requests that write.
  static func writes(in statistics: [String: UInt64]) -> String {
    statistics["written_total"] == nil ? "revision" : "written_total"
  }

  private func rate(_ name: String, of store: StoreSample) -> Double? {
    rate(store.statistics[name], previous?.stores.first { $0.name == store.name }?.statistics[name])
  }

  private func rate(_ name: String) -> Double? { rate(latest?.server[name], previous?.server[name]) }

  private func rate(_ new: UInt64?, _ old: UInt64?) -> Double? {
    guard let latest, let previous else { return nil }
    return Self.rate(new, old, seconds: latest.time - previous.time)
  }

  /// Returns the growth of a statistic per second; nil if it is unknown.
  static func rate(_ new: UInt64?, _ old: UInt64?, seconds: Double) -> Double? {
    guard let new, let old, new >= old, seconds > 0 else { return nil }
    return min(Double(new - old) / seconds, maxRate)
  }

  private func bytesRate(_ name: String) -> String { rate(name).map { "\(HumanReadable.bytes(UInt64($0)))/s" } ?? "–" }

  static func sparkline(_ values: some Collection<Double>) -> String {
    let maximum = values.max() ?? 0
    guard maximum > 0 else { return String(repeating: sparklineLevels[0], count: values.count) }
    let top = Double(sparklineLevels.count - 1)
    return String(values.map { sparklineLevels[Int(min(top, $0 / maximum * top + 0.5))] })
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
