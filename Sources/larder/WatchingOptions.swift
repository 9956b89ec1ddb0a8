import ArgumentParser

/// Whether figures are shown again and again.
struct WatchingOptions: ParsableArguments {
  @Flag(help: "Show them again and again.")
  var watch = false

  @Option(
    help: ArgumentHelp("How long to wait in between, with --watch. (default: 1s)", valueName: "time"),
    transform: { try TimeSpan($0) })
  var interval: TimeSpan?

  func validate() throws {
    guard interval == nil || watch else { throw ValidationError("--interval is for --watch") }
  }

  var pause: Duration { interval?.duration ?? .seconds(1) }
}
