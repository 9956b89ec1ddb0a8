import ArgumentParser
import Foundation
import Platform

struct DocumentsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "documents",
    abstract: "Compares work on documents with Foundation, SQLite and its goals, in this process.",
    discussion: "A goal that is not reached does not make the command fail.")

  @Option(help: "The folder for documents.md and documents.json. (default: only print the table)")
  private var results: String?
  @Option(name: .customLong("repeat"), help: "The number of rounds.")
  private var repeats = 15
  @Option(help: "The seed of all random documents.")
  private var seed: UInt64 = 1
  @Flag(help: "Print the result as JSON instead of a table.")
  private var json = false

  func validate() throws {
    guard (1...100).contains(repeats) else { throw ValidationError("--repeat takes 1 to 100.") }
  }

  func run() throws {
    do {
      let display = LiveProgress()
      let report = try DocumentsBench(rounds: repeats, seed: seed, display: display).run()
      display.clear()
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
}
