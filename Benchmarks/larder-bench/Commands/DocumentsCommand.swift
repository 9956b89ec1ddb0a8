import ArgumentParser
import Foundation
import Platform

struct DocumentsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "documents",
    abstract: "Compares work on documents and their indexes with Foundation, SQLite and goals.",
    discussion: """
      Measures JSON, selectors, sorting and indexes in this process, and finds and gets by its own larderd. SQLite has \
      indexes of expressions. Checks that both find the same documents. Takes up to four minutes and 1 GB of memory. A \
      goal that is not reached does not make the command fail.
      """)

  @Option(help: "The folder for documents.md and documents.json. (default: only print the table)")
  private var results: String?
  @Option(name: .customLong("repeat"), help: "The number of rounds. (default: 15, or 5 of long work; quick: 2, or 1)")
  private var repeats: Int?
  @Option(help: "The seed of all random documents.")
  private var seed: UInt64 = 1
  @Flag(help: "Take rough measurements with fewer documents, in less than half a minute.")
  private var quick = false
  @Flag(help: "Print the result as JSON instead of a table.")
  private var json = false

  func validate() throws {
    guard repeats.map({ (1...100).contains($0) }) ?? true else { throw ValidationError("--repeat takes 1 to 100.") }
  }

  func run() throws {
    do {
      let report = try measure()
      if let results {
        try FileManager.default.createDirectory(atPath: results, withIntermediateDirectories: true)
        try report.markdown.write(toFile: "\(results)/documents.md", atomically: true, encoding: .utf8)
        try (JSON.encode(report) + "\n").write(toFile: "\(results)/documents.json", atomically: true, encoding: .utf8)
      }
      print(json ? try JSON.encode(report) : report.markdown)
    } catch {
      logLine("larder-bench: \(error)")
      throw ExitCode.failure
    }
  }

  private func measure() throws -> DocumentsReport {
    var plan = quick ? DocumentsPlan.quick : DocumentsPlan()
    if let repeats { (plan.rounds, plan.longRounds) = (repeats, min(repeats, plan.longRounds)) }
    plan.seed = seed
    let folder = try TemporaryFolder()
    let signalCleanup = SignalCleanup(folder)
    let display = LiveProgress()
    defer {
      display.clear()
      signalCleanup.cancel()
      folder.remove()
    }
    return try DocumentsBench(plan, in: folder, display: display).run()
  }
}
