import ArgumentParser
import Platform

struct GateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gate",
    abstract: "Compares two JSON results, and fails when a figure got worse by more than the threshold.",
    discussion: """
      Takes what run, compare, durable and client wrote with --json or --results. In a comparison only Larder's figures count, unless --all is given. \
      Exit status: 0 nothing is past the threshold, 1 something is, 2 the files can't be compared.
      """)

  @Argument(help: "The result to hold on to.")
  var old: String
  @Argument(help: "The result to judge.")
  var new: String
  @Option(help: "How much worse a figure may be.", transform: PercentArgument.init)
  var threshold: PercentArgument
  @Flag(help: "Judge the figures of peers, too.")
  var all = false

  func run() throws {
    let gate: Gate
    do {
      gate = Gate(
        old: try JSON.decode(Gate.Result.self, from: old), new: try JSON.decode(Gate.Result.self, from: new),
        threshold: threshold.part, ofAll: all)
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode(2)
    }
    guard !gate.lines.isEmpty else {
      logLine("larder-bench: \(old) has no figures")
      throw ExitCode(2)
    }
    print(gate.text)
    if gate.hasFailed {
      let count = gate.lines.count(where: \.isPast)
      logLine(
        "larder-bench: \(count) of \(gate.lines.count) figures are past the threshold of \(percent(threshold.part))")
      throw ExitCode.failure
    }
  }
}
