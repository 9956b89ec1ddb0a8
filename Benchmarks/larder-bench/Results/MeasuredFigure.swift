/// A measured quantity.
struct Quantity: Equatable, Sendable {
  /// The name in results, such as `server CPU a request`.
  let name: String
  let unit: String
  let isBetterLower: Bool

  init(_ name: String, _ unit: String, isBetterLower: Bool = true) {
    self.name = name
    self.unit = unit
    self.isBetterLower = isBetterLower
  }

  static let cpu = Quantity("server CPU a request", "µs")
  static let throughput = Quantity("throughput", "requests/s", isBetterLower: false)
  static let p50 = Quantity("p50 latency", "µs")
  static let p99 = Quantity("p99 latency", "µs")
  static let p999 = Quantity("p99.9 latency", "µs")

  /// The title in a row, with the unit.
  var title: String {
    switch unit {
    case "requests/s": "requests per second"
    case "": name
    default: "\(name), \(unit)"
    }
  }
}

/// A measured figure, by which two results are compared.
struct MeasuredFigure: Equatable, Sendable {
  /// The work, such as `get, pipeline 16`.
  let work: String
  let quantity: Quantity
  let contender: String
  let median: Double
  let lowest: Double
  let highest: Double

  /// - Precondition: `values` is not empty.
  init(_ work: String, _ quantity: Quantity, of contender: String, _ values: [Double]) {
    let sorted = values.sorted()
    precondition(!sorted.isEmpty)
    self.work = work
    self.quantity = quantity
    self.contender = contender
    let middle = sorted.count / 2
    median = rounded(sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2)
    lowest = rounded(sorted[0])
    highest = rounded(sorted[sorted.count - 1])
  }

  var name: String { "\(contender): \(work): \(quantity.name)" }
  private var best: Double { quantity.isBetterLower ? lowest : highest }
  private var worst: Double { quantity.isBetterLower ? highest : lowest }

  /// Which of the measured values counts.
  enum Basis: Sendable {
    case median
    case best
  }

  func value(_ basis: Basis) -> Double { basis == .median ? median : best }

  /// The value that counts, with the range if the measured values differ.
  func cell(_ basis: Basis = .median) -> String {
    guard lowest < highest else { return grouped(median) }
    return basis == .median
      ? "\(grouped(median)) (\(grouped(lowest))–\(grouped(highest)))" : "\(grouped(best)) (–\(grouped(worst)))"
  }
}

/// Figures in the order in which they were measured.
///
/// In JSON, each quantity of a work is an object, which has the median, lowest and highest value of each contender.
struct Figures: Codable, Sendable {
  private(set) var all: [MeasuredFigure] = []

  private struct Row: Codable {
    let work: String
    let figure: String
    let unit: String
    let isBetterLower: Bool
    var values: [String: [Double]] = [:]

    init(_ figure: MeasuredFigure) {
      work = figure.work
      self.figure = figure.quantity.name
      unit = figure.quantity.unit
      isBetterLower = figure.quantity.isBetterLower
    }
  }

  init(_ all: [MeasuredFigure] = []) { self.all = all }

  init(from decoder: any Decoder) throws {
    for row in try [Row](from: decoder) {
      let quantity = Quantity(row.figure, row.unit, isBetterLower: row.isBetterLower)
      for (contender, values) in row.values.sorted(by: { $0.key < $1.key }) {
        add(row.work, quantity, of: contender, values)
      }
    }
  }

  func encode(to encoder: any Encoder) throws {
    var rows: [Row] = []
    for figure in all {
      var index = rows.endIndex
      if let known = rows.firstIndex(where: { $0.work == figure.work && $0.figure == figure.quantity.name }) {
        index = known
      } else {
        rows.append(Row(figure))
      }
      rows[index].values[figure.contender] = [figure.median, figure.lowest, figure.highest]
    }
    try rows.encode(to: encoder)
  }

  /// Adds a figure, unless there are no values.
  mutating func add(
    _ work: String, _ quantity: Quantity, of contender: String = Contender.larder, _ values: [Double]
  ) {
    guard !values.isEmpty else { return }
    all.append(MeasuredFigure(work, quantity, of: contender, values))
  }

  mutating func add(_ figures: [MeasuredFigure]) { all += figures }

  func find(_ work: String, _ quantity: Quantity, of contender: String = Contender.larder) -> MeasuredFigure? {
    all.first { $0.work == work && $0.quantity == quantity && $0.contender == contender }
  }

  /// Returns the figure of the best of the contenders, except Larder and the echo.
  func bestPeer(_ work: String, _ quantity: Quantity, among contenders: [String]) -> MeasuredFigure? {
    let names = contenders.filter(Contender.isPeer)
    let peers = all.filter { $0.work == work && $0.quantity == quantity && names.contains($0.contender) }
    return quantity.isBetterLower ? peers.min { $0.median < $1.median } : peers.max { $0.median < $1.median }
  }
}
