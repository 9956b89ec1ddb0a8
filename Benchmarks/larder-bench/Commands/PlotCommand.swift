import ArgumentParser
import Platform

struct PlotCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plot",
    abstract: "Draws the results of compare: CPU time, latency by percentile, and latency by load.",
    discussion: "Requires gnuplot, which contrib/bench installs.")

  @Argument(help: "The results.")
  private var results = "Benchmarks/results/\(BenchResult.fileName)"
  @Option(help: "The folder for the plots.")
  private var output = ".build/plots"

  func run() throws {
    do {
      guard let result = try BenchResult.all(in: results)["compare"] else {
        throw BenchError("\(results) has no results of compare")
      }
      guard Plots.isPossible else { throw BenchError("gnuplot is not installed; contrib/bench installs it") }
      try Plots(result, folder: output).write()
      print(Plots.names.map { "\(output)/\($0)" }.joined(separator: "\n"))
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode.failure
    }
  }
}
