/// What `larder stats --watch` shows: a plain value that figures go into, and lines come out of.
struct StatsPage {
  /// What was read of a server at one time.
  struct Sample {
    /// In seconds, of a clock that never goes back.
    let time: Double
    let server: [String: UInt64]
    let stores: [StoreSample]
  }

  struct StoreSample {
    let name: String
    let engine: String
    let figures: [String: UInt64]
  }

  private static let sparks = Array("▁▂▃▄▅▆▇█")
  private static let mostRates = 60
  /// Whoever calls itself a server can tell of more, which no integer might hold.
  private static let highestRate = 1e15

  private let address: String
  private var last: Sample?
  private var before: Sample?
  /// Requests a second, between one sample and the next.
  private var rates: [Double] = []
  /// Why there is no newer sample.
  private var failure: String?

  init(address: String) {
    self.address = address
  }

  mutating func add(_ sample: Sample) {
    // The counts of a server that was started anew begin anew.
    let isSame = last.map {
      $0.server["uptime_milliseconds", default: 0] <= sample.server["uptime_milliseconds", default: 0]
    }
    before = isSame == true ? last : nil
    last = sample
    failure = nil
    if let rate = rate("requests_total") { rates = rates.suffix(Self.mostRates - 1) + [rate] }
  }

  mutating func add(failure: String) { self.failure = failure }

  func lines(height: Int) -> [String] {
    guard let last else { return ["larderd at \(address)", failure ?? "…"] }
    let server = last.server
    var lines = [
      "larderd at \(address), up \(HumanReadable.time(seconds: server["uptime_milliseconds", default: 0] / 1_000))"
    ]
    if let failure { lines.append("(!) \(failure)") }
    let requests = rate("requests_total").map { "\(HumanReadable.number(Int($0)))/s" } ?? "–"
    lines.append("requests     \(Self.pad(requests, 14)) \(Self.sparkline(rates))")
    if server["request_p50_nanoseconds", default: 0] > 0 {
      let names = [
        ("p50", "request_p50_nanoseconds"), ("p99", "request_p99_nanoseconds"), ("p99.9", "request_p999_nanoseconds"),
      ]
      lines.append(
        "took less    "
          + names.map { "\($0.0) \(HumanReadable.duration(nanoseconds: server[$0.1, default: 0]))" }.joined(
            separator: "   ")
      )
    }
    let traffic = ["received", "sent"].map { "\($0) \(bytesRate("\($0)_bytes_total"))" }.joined(separator: "   ")
    lines.append("traffic      \(traffic)   waiting \(HumanReadable.bytes(server["output_bytes", default: 0]))")
    lines.append(
      "connections  \(server["connections", default: 0])   memory of stores \(HumanReadable.bytes(server["memory_bytes", default: 0]))"
    )
    lines.append("")
    return lines + storeLines(last.stores, room: height - lines.count - 2) + ["", "^C ends"]
  }

  private func storeLines(_ stores: [StoreSample], room: Int) -> [String] {
    func have(_ name: String) -> Bool { stores.contains { $0.figures[name] != nil } }
    let (haveLimits, haveLogs) = (have("limit_bytes"), have("log_bytes"))
    // Only what some store has, for a terminal is narrow.
    var table = Table(
      header: ["STORE", "ENGINE", "ENTRIES", "WRITES/S", "WATCHES", "MEMORY"]
        + (haveLimits ? ["LIMIT", "EVICTED/S"] : [])
        + (haveLogs ? ["LOG", "DEAD"] : []))
    for store in stores {
      let figures = store.figures
      func bytes(_ name: String) -> String { figures[name].map { HumanReadable.bytes($0) } ?? "–" }
      func rate(_ name: String) -> String { self.rate(name, of: store).map { "\(Int($0))" } ?? "–" }
      // Every write takes a revision.
      var cells = [store.name, store.engine, "\(figures["entries", default: 0])", rate("revision")]
      cells += ["\(figures["watches", default: 0])", bytes("memory_bytes")]
      if haveLimits { cells += [bytes("limit_bytes"), rate("evicted_total")] }
      if haveLogs { cells += [bytes("log_bytes"), bytes("log_dead_bytes")] }
      table.add(cells)
    }
    let lines = table.text.split(separator: "\n").map(String.init)
    guard lines.count > max(2, room) else { return lines }
    let shown = max(2, room) - 1
    return lines.prefix(shown) + ["… and \(lines.count - shown) more"]
  }

  private func rate(_ name: String, of store: StoreSample) -> Double? {
    rate(store.figures[name], before?.stores.first { $0.name == store.name }?.figures[name])
  }

  private func rate(_ name: String) -> Double? { rate(last?.server[name], before?.server[name]) }

  private func rate(_ new: UInt64?, _ old: UInt64?) -> Double? {
    guard let new, let old, new >= old, let last, let before, last.time > before.time else { return nil }
    return min(Double(new - old) / (last.time - before.time), Self.highestRate)
  }

  private func bytesRate(_ name: String) -> String { rate(name).map { "\(HumanReadable.bytes(UInt64($0)))/s" } ?? "–" }

  static func sparkline(_ values: [Double]) -> String {
    let most = values.max() ?? 0
    guard most > 0 else { return String(repeating: sparks[0], count: values.count) }
    return String(values.map { sparks[min(sparks.count - 1, Int($0 / most * Double(sparks.count - 1) + 0.5))] })
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
