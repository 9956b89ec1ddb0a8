import ArgumentParser
import Platform

struct GateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gate",
    abstract: "Compares two JSON results and fails if a figure got worse by more than the threshold.",
    discussion: """
      Reads what run, micro, compare, durable, client and documents print with --json or write with --results. Families of \
      benchmarks that the new file lacks don't count. Of comparisons, it checks only Larder's figures unless --all is \
      given. Exit status: 0 no figure exceeds the \
      threshold, 1 a figure does, 2 the files can't be compared.
      """)

  @Argument(help: "The baseline result.")
  private var old: String
  @Argument(help: "The result to check.")
  private var new: String
  @Option(help: "By how much a figure may get worse.", transform: PercentArgument.init)
  private var threshold: PercentArgument
  @Flag(help: "Check the figures of peers, too.")
  private var all = false

  func run() throws {
    let gate: Gate
    do {
      gate = Gate(
        old: try JSON.decode(Gate.Result.self, from: old), new: try JSON.decode(Gate.Result.self, from: new),
        threshold: threshold.fraction, includesPeers: all)
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode(2)
    }
    guard !gate.isEmpty else {
      logLine("larder-bench: \(old) contains no figures")
      throw ExitCode(2)
    }
    print(gate.text)
    if gate.hasFailed {
      logLine("larder-bench: \(gate.summary)")
      throw ExitCode.failure
    }
  }
}

/// A comparison of two results, figure by figure.
struct Gate {
  private struct Line {
    private let old: MeasuredFigure
    /// Nil if the new result lacks the figure.
    private let new: Double?
    /// By how much the new value is worse, as a fraction of the old one; negative if it is better.
    private let regression: Double
    let exceedsThreshold: Bool

    init(_ old: MeasuredFigure, new: Double?, threshold: Double) {
      self.old = old
      self.new = new
      guard let new else {
        (regression, exceedsThreshold) = (0, true)
        return
      }
      let scale = max(abs(old.median), 1e-9)
      regression = (old.quantity.isBetterLower ? new - old.median : old.median - new) / scale
      exceedsThreshold = regression > threshold
    }

    var text: String {
      let mark = exceedsThreshold ? "FAIL" : "ok  "
      guard let new else { return "\(mark)  \(old.name): missing from the new result" }
      let change = "\(regression > 0 ? "worse" : "better") by \(decimal(abs(regression) * 100, 1))%"
      return "\(mark)  \(old.name): \(grouped(old.median)) → \(grouped(new)) \(old.quantity.unit), \(change)"
    }
  }

  /// The figures of a result file.
  struct Result: Decodable {
    /// By family; the key is empty if the file has a single result.
    private let figures: [String: [MeasuredFigure]]

    private struct Part: Decodable {
      let figures: Figures
    }

    init(_ figures: [MeasuredFigure]) { self.figures = ["": figures] }

    init(from decoder: any Decoder) throws {
      let parts = (try? Part(from: decoder)).map { ["": $0] }
      figures = try (parts ?? [String: Part](from: decoder)).mapValues(\.figures.all)
    }

    /// Returns the figures of the families that the other result has, too.
    func figures(sharedWith other: Result) -> [MeasuredFigure] {
      figures.filter { other.figures[$0.key] != nil }.sorted { $0.key < $1.key }.flatMap(\.value)
    }
  }

  private let lines: [Line]
  private let threshold: Double

  /// Whether there is nothing to compare.
  var isEmpty: Bool { lines.isEmpty }
  var hasFailed: Bool { lines.contains(where: \.exceedsThreshold) }

  /// - Parameters:
  ///   - threshold: By how much a figure may get worse, as a fraction of the old value.
  ///   - includesPeers: Whether figures of peers count, too. They say more about the machine than about Larder.
  init(old: Result, new: Result, threshold: Double, includesPeers: Bool) {
    let (oldFigures, newFigures) = (old.figures(sharedWith: new), new.figures(sharedWith: old))
    let hasLarder = oldFigures.contains { $0.contender == Contender.larder }
    let relevant = oldFigures.filter { includesPeers || !hasLarder || $0.contender == Contender.larder }
    lines = relevant.map { old in
      Line(old, new: newFigures.first { $0.name == old.name }?.median, threshold: threshold)
    }
    self.threshold = threshold
  }

  var text: String { lines.map(\.text).joined(separator: "\n") }

  var summary: String {
    let count = lines.count(where: \.exceedsThreshold)
    return "\(count) of \(lines.count) figures exceed the threshold of \(percent(threshold))"
  }
}
