import Basics
import Foundation
import Platform

/// Where and of what a result was made, so that it can be made again.
struct Surroundings: Codable, Sendable {
  var date: String
  /// What git says of the checkout that holds this program, else the version that it was built as.
  var commit: String
  var kernel: String
  var processor: String
  var cores: Int
  /// Processes that ran or wanted to run, on average over the last minute, when the measuring began.
  var loadAverage: Double

  init() {
    date = ISO8601DateFormatter().string(from: Date())
    let folder = Programs.folder
    commit =
      Programs.output("git", ["-C", folder, "describe", "--always", "--dirty", "--abbrev=12"]) ?? softwareVersion
    kernel = Self.line("/proc/sys/kernel/osrelease") ?? "unknown"
    let model = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8).split(separator: "\n")
      .first { $0.hasPrefix("model name") }
    processor =
      model?.split(separator: ":", maxSplits: 1).last.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown"
    cores = ProcessInfo.processInfo.processorCount
    loadAverage = Self.line("/proc/loadavg")?.split(separator: " ").first.flatMap { Double($0) } ?? 0
  }

  private static func line(_ path: String) -> String? {
    (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n").first.map(String.init)
  }
}
