import ArgumentParser
import Platform

struct CompareCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare",
    abstract: "Runs the same work on Larder, every installed peer and a bare echo server, in turns.",
    discussion: """
      Starts larderd, bench-echo and, if they are installed, redis-server, valkey-server and memcached. Checks that \
      each returns the values that were written. contrib/bench installs what is missing; larder-bench plot draws \
      the results of small requests.

      The works: small, requests with values of 100 bytes; large, gets and puts of 64 KiB and 1 MiB; isolation, small \
      gets beside gets of 10 MB; memory, what stays resident after bursts; stall, gets while the disk of another store \
      stalls, which requires root. The others than small compare Larder with Redis and Valkey over TCP and with goals; \
      they are a family of results of their own. A goal that is not reached does not make the command fail, except \
      with --check.
      """)

  @Option(
    parsing: .upToNextOption,
    help: "What to measure: small, or one or more of large, isolation, memory and stall. (default: small)")
  private var work: [ComparedWork] = []
  @Flag(help: "Measure Larder alone, and fail if it misses a goal of isolation, memory or stall.")
  private var check = false
  @OptionGroup private var options: BenchOptions

  func validate() throws {
    guard !work.contains(.small) || Set(work) == [.small] else {
      throw ValidationError("--work small can't be combined with other works.")
    }
    // The goals of the other works are relative to peers.
    guard !check || (!work.isEmpty && !work.contains { $0 == .small || $0 == .large }) else {
      throw ValidationError("--check takes --work isolation, memory or stall.")
    }
  }

  func run() throws {
    let parts = LargePart.allCases.filter { part in work.contains { $0.part == part } }
    if parts.isEmpty { return try options.run(measure: compareSmall) }
    // The disk of the stores that stall or don't.
    try options.run(disk: Programs.folder) { (plan: inout LargePlan) in
      plan.parts = parts
      plan.includesPeers = !check
    } measure: { plan, runner in
      var bench = LargeBench(plan, runner)
      return try bench.run()
    } conclude: { report in
      let missed = report.rows.filter { $0.isReached == false }.map(\.title)
      if check, !missed.isEmpty { throw BenchError("missed goals: \(missed.joined(separator: "; "))") }
    }
  }

  private func compareSmall(_ plan: ComparisonPlan, _ runner: BenchRunner) throws -> BenchReport {
    let contenders = try Contender.installed()
    if !contenders.contains(where: \.isPeer) {
      logLine("larder-bench: no peer is installed; contrib/bench installs redis-server, valkey-server and memcached")
    }
    var comparison = try ServerComparison(plan, contenders, runner)
    return try comparison.run()
  }
}

/// A group of works of `larder-bench compare`.
private enum ComparedWork: String, CaseIterable, ExpressibleByArgument {
  case small
  case large
  case isolation
  case memory
  case stall

  /// The part of the comparison of large requests; nil for small ones.
  var part: LargePart? { LargePart(rawValue: rawValue) }
}
