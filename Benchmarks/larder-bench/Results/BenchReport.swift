import Foundation

/// The result of a family of benchmarks: tables for readers, and figures that can be compared with those of other runs.
struct BenchReport: Sendable {
  /// The name of the family, and of its files.
  private let family: String
  private let title: String
  /// The file system of the servers' data, if it matters.
  private let fileSystem: String?
  private let surroundings = Surroundings()
  private let start = Clocks.now()
  /// The total duration, in seconds.
  private var seconds = 0.0
  /// The load by other processes in each turn of a closed loop, in cores, sorted.
  private var othersLoads: [Double] = []
  private(set) var contenders: [Contender] = []
  var figures = Figures()
  /// The points of plots.
  var curves: [Curve] = []
  /// The figures that are compared or have goals.
  private(set) var rows: [GoalRow] = []
  private var text = ""

  init(_ family: String, title: String, fileSystem: String? = nil) {
    self.family = family
    self.title = title
    self.fileSystem = fileSystem
  }

  /// Adds a contender to the list. Returns whether it was new.
  @discardableResult
  mutating func add(_ contender: Contender) -> Bool {
    guard !contenders.contains(where: { $0.commandLine == contender.commandLine }) else { return false }
    contenders.append(contender)
    return true
  }

  /// Adds the outcomes of turns of a load.
  mutating func add(_ work: String, _ contender: String, _ outcomes: [LoadOutcome]) {
    othersLoads += outcomes.compactMap { $0.server.map { rounded($0.othersLoad) } }
    let cpu = outcomes.compactMap { $0.server?.cpuMicroseconds(perRequestOf: $0.tally.answered) }
    figures.add(work, .cpu, of: contender, cpu)
    figures.add(work, .throughput, of: contender, outcomes.map(\.rate))
    for (quantity, percentile) in [(Quantity.p50, 50.0), (.p99, 99)] {
      figures.add(work, quantity, of: contender, outcomes.map { $0.tally.microseconds(percentile) })
    }
  }

  /// - Parameter sections: The Markdown after the heading: how it was measured, tables, and remarks.
  mutating func finish(_ rows: [GoalRow], sections: [String]) {
    seconds = rounded(Double(Clocks.now() - start) / 1e9)
    othersLoads.sort()
    self.rows = rows
    text = sections.joined(separator: "\n\n")
  }

  /// A sentence about the load by other processes, after a space, if that is known. It includes the kernel threads that write to disks.
  var disturbance: String {
    let loads = othersLoads.sorted()
    guard let maximum = loads.last else { return "" }
    let median = loads[loads.count / 2]
    // The kernel's work for a disk takes far less than that.
    let warning = median > 0.5 ? " **That is too much for meaningful figures.**" : ""
    return
      " Other processes, including kernel threads, used \(percent(median)) of a core in the median turn and at most "
      + "\(percent(maximum)).\(warning)"
  }

  /// The report as Markdown.
  var markdown: String {
    let heading = "# \(title)\n\n\(surroundings.markdown(fileSystem: fileSystem)) · \(Int(seconds)) s in all"
    let list = contenders.isEmpty ? [] : ["## Contenders\n\n" + contenders.map(\.markdown).joined(separator: "\n")]
    return ([heading, text] + list).joined(separator: "\n\n") + "\n"
  }

  var result: BenchResult {
    BenchResult(
      surroundings: surroundings, seconds: seconds, figures: figures, goals: rows.map(\.verdict), curves: curves)
  }

  /// Writes the tables to a file in the folder, and the figures to the file of all families.
  func write(to folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try markdown.write(toFile: "\(folder)/\(family).md", atomically: true, encoding: .utf8)
    let path = "\(folder)/\(BenchResult.fileName)"
    var results = FileManager.default.fileExists(atPath: path) ? try BenchResult.all(in: path) : [:]
    results[family] = result
    try (JSON.encode(results, levels: 3) + "\n").write(toFile: path, atomically: true, encoding: .utf8)
  }
}

/// The figures of a family of benchmarks, as written to JSON.
struct BenchResult: Codable, Sendable {
  let surroundings: Surroundings
  let seconds: Double
  let figures: Figures
  let goals: [GoalRow.Verdict]
  let curves: [Curve]

  /// The file with the results of all families.
  static let fileName = "figures.json"

  /// Reads the results of all families in a file.
  static func all(in path: String) throws -> [String: BenchResult] {
    try JSON.decode([String: BenchResult].self, from: path)
  }
}

/// A contender's line in a plot.
struct Curve: Codable, Sendable {
  let plot: String
  let contender: String
  /// Points, whose first two numbers are drawn.
  let points: [[Double]]
}
