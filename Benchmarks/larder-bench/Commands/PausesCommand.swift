import ArgumentParser
import Platform

struct PausesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pauses",
    abstract: "Measures how long operations at their limits delay small requests of other clients.",
    discussion: """
      Starts larderd, executes each operation several times, and sends small gets on the same store and pings over other \
      connections meanwhile.
      """)

  @Option(help: "Measure only the operations whose names contain this text.")
  private var only: String?
  @Option(name: .customLong("repeat"), help: "How many times each operation is executed at least.")
  private var repeats = 5
  @Flag(help: "Measure again, twice at most, what has a 99.9th percentile above 5 ms, and fail if it still has.")
  private var check = false

  func validate() throws {
    guard (1...100).contains(repeats) else { throw ValidationError("--repeat takes 1 to 100.") }
  }

  func run() throws {
    raiseDescriptorLimit()
    do {
      let folder = try TemporaryFolder()
      let signalCleanup = SignalCleanup(folder)
      defer { withExtendedLifetime(signalCleanup) {} }
      let bench = PausesBench(only: only ?? "", repeats: repeats, maxTries: check ? 3 : 1, in: folder)
      let rows = try bench.run()
      guard !rows.isEmpty else { throw BenchError("no operation has a name with \"\(only ?? "")\"") }
      print(PausesBench.table(of: rows))
      if check, let slow = rows.first(where: { $0.p999 > PausesBench.goal }) {
        throw BenchError("\(slow.name) delays others too long")
      }
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode.failure
    }
  }
}
