import Basics
import Foundation
import Platform

/// The machine and the version that produced a result, for reproducing it.
struct Surroundings: Codable, Sendable {
  private var date: String
  /// The commit of the checkout that contains this program, or else the program's version.
  private var commit: String
  private var kernel: String
  private var processor: String
  private var cores: Int
  /// The load average over the last minute when the measurement started.
  private var loadAverage: Double

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

  /// The line under a report's heading.
  /// - Parameter fileSystem: The file system of the servers' data, if it matters.
  func markdown(fileSystem: String? = nil) -> String {
    let parts = [
      date, commit, "Linux \(kernel)", "\(cores) × \(processor)", fileSystem,
      "load average at the start \(decimal(loadAverage, 2))",
    ]
    return parts.compactMap(\.self).joined(separator: " · ")
  }

  /// The same as plain text.
  var text: String {
    "\(commit), Linux \(kernel), \(cores) × \(processor), load average \(decimal(loadAverage, 2)), \(date)"
  }

  private static func line(_ path: String) -> String? {
    (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n").first.map(String.init)
  }
}

/// The file system of a folder, from `/proc/self/mountinfo` (proc(5)).
struct Mount: CustomStringConvertible {
  /// The type, such as `ext4`.
  let kind: String
  /// The mounted device, such as `/dev/vda`.
  private let source: String

  /// Returns nil if the mount can't be determined.
  init?(holding folder: String) {
    let folder = URL(fileURLWithPath: folder).resolvingSymlinksInPath().path
    guard let text = try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8) else { return nil }
    var longest = 0
    var found: (kind: String, source: String)?
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count > 5, let dash = fields.firstIndex(of: "-"), dash + 2 < fields.count else { continue }
      // A later mount hides an earlier one at the same mount point.
      let mountPoint = fields[4].replacingOccurrences(of: "\\040", with: " ")
      let isAbove = mountPoint == "/" || folder == mountPoint || folder.hasPrefix(mountPoint + "/")
      guard isAbove, mountPoint.utf8.count >= longest else { continue }
      longest = mountPoint.utf8.count
      found = (String(fields[dash + 1]), String(fields[dash + 2]))
    }
    guard let found else { return nil }
    (kind, source) = found
  }

  /// Whether the file system is in memory only.
  var isMemory: Bool { ["tmpfs", "ramfs"].contains(kind) }

  var description: String { kind == source ? kind : "\(kind) (\(source))" }
}
