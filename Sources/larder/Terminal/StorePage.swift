/// The page that `larder stats STORE --watch` shows. A plain value: statistics go in, lines come out.
struct StorePage {
  private struct Sample {
    let time: Double
    let statistics: [String: UInt64]
  }

  private let title: String
  private var latest: Sample?
  private var previous: Sample?
  /// The written entries per second between consecutive samples.
  private var rates: [Double] = []
  /// Why there is no newer sample, if there is none.
  private var failure: String?

  init(store: String, address: String) {
    title = "\(store) of larderd at \(address)"
  }

  /// - Parameter time: The time of a monotonic clock, in seconds.
  mutating func add(_ statistics: [String: UInt64], time: Double) {
    (previous, latest, failure) = (latest, Sample(time: time, statistics: statistics), nil)
    if let rate = rate(StatsPage.writes(in: statistics)) { rates = rates.suffix(StatsPage.maxRateCount - 1) + [rate] }
  }

  mutating func add(failure: String) { self.failure = failure }

  func lines(width: Int = Terminal.width, height: Int) -> [String] {
    var lines = [title]
    if let failure { lines.append("(!) \(failure)") }
    guard let latest else { return lines }
    let writes = rate(StatsPage.writes(in: latest.statistics)).map { "\(HumanReadable.number(Int($0)))/s" } ?? "–"
    let label = "writes   \(writes)   "
    lines += [label + StatsPage.sparkline(rates.suffix(max(0, width - label.count))), ""]
    var table = Table(header: ["STATISTIC", "VALUE", "", "PER SECOND"], omissible: ["", "PER SECOND"])
    for (name, value) in latest.statistics.sorted(by: { $0.key < $1.key }) {
      let rate = name.hasSuffix("_total") || name == "revision" ? rate(name) : nil
      table.add(
        name, String(value), HumanReadable.statistic(name, value), rate.map { HumanReadable.number(Int($0)) } ?? "")
    }
    lines += table.text(width: width).split(separator: "\n").map(String.init)
    let end = ["", AlternateScreen.hint]
    return lines.prefix(max(0, height - end.count)) + end
  }

  private func rate(_ name: String) -> Double? {
    guard let latest, let previous else { return nil }
    return StatsPage.rate(
      latest.statistics[name], previous.statistics[name], seconds: latest.time - previous.time)
  }
}
