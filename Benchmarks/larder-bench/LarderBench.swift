import ArgumentParser

@main
struct LarderBench: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder-bench",
    abstract: "Measures Larder and its peers under the same load.",
    discussion: """
      Example: larder-bench run --target larder:unix:/run/larder.sock --workload get --server-pid "$(pidof larderd)"
      """,
    subcommands: [
      RunCommand.self, CompareCommand.self, DurableCommand.self, GateCommand.self, MicroCommand.self,
      ClientCommand.self, DocumentsCommand.self, PausesCommand.self, PlotCommand.self,
    ])
}
