import ArgumentParser
import Glibc

/// The form of results.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
  case table, json, csv
}

/// The options of commands that print results.
struct OutputOptions: ParsableArguments {
  enum Color: String, CaseIterable, ExpressibleByArgument {
    case auto, always, never
  }

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The format of the output: table, json (lines of JSON), or csv. (default: a table on a terminal, otherwise json)",
      valueName: "format"))
  private(set) var format: OutputFormat?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Whether tables have color: auto, always or never; auto is on a terminal, unless NO_COLOR is set.",
      valueName: "when"))
  private(set) var color: Color = .auto

  @Flag(help: "Don't use the pager in PAGER, which shows tables that are longer than the terminal.")
  private(set) var noPager = false
}

/// A command that prints results in the form of its options.
protocol OutputCommand {
  var outputOptions: OutputOptions { get }
}
