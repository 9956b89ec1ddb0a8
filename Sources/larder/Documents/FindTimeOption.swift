import ArgumentParser
import Larder

/// How long the server may take to find, count, group, update or delete documents.
struct FindTimeOption: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How long the server may work on it, such as 30s, up to its limits.max-find-time. (default: its limits.find-time)",
      valueName: "time"),
    transform: { try DurationArgument($0) })
  private var time: DurationArgument?

  /// Returns a store whose requests on documents may take this time.
  func apply(to store: RemoteStore) -> RemoteStore { time.map { store.with(findTime: $0.duration) } ?? store }
}
