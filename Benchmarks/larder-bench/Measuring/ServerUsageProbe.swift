import Foundation

/// A probe that reads a server process's resource usage.
struct ServerUsageProbe: Sendable {
  let process: Int32

  struct Sample: Sendable {
    fileprivate var cpuNanoseconds: UInt64
    fileprivate(set) var residentBytes: Int
    fileprivate var voluntarySwitches: Int
    fileprivate var involuntarySwitches: Int
    /// The CPU time of the whole machine and of this process, in seconds.
    fileprivate let machineSeconds = MachineClock.busySeconds()
    fileprivate let ownSeconds = Double(Clocks.processCPU()) / 1e9
  }

  /// - Throws: `BenchError` if the process doesn't exist.
  init(process: Int32) throws {
    self.process = process
    guard sample() != nil else { throw BenchError("there is no process \(process)") }
  }

  func sample() -> Sample? {
    guard let cpu = Clocks.cpu(ofProcess: process) else { return nil }
    var sample = Sample(cpuNanoseconds: cpu, residentBytes: 0, voluntarySwitches: 0, involuntarySwitches: 0)
    sample.residentBytes = (Self.figures("/proc/\(process)/status")["VmRSS"] ?? 0) * 1_024
    // The status of the process counts the context switches of its main thread only.
    let tasks = "/proc/\(process)/task"
    for thread in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
      let figures = Self.figures("\(tasks)/\(thread)/status")
      sample.voluntarySwitches += figures["voluntary_ctxt_switches"] ?? 0
      sample.involuntarySwitches += figures["nonvoluntary_ctxt_switches"] ?? 0
    }
    return sample
  }

  /// The bytes that the process wrote to disk, in whole pages; nil if the system doesn't report them.
  var writtenBytes: Int? { Self.figures("/proc/\(process)/io")["write_bytes"] }

  /// Returns the numeric fields of a status file by name.
  private static func figures(_ path: String) -> [String: Int] {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [:] }
    let pairs = text.split(separator: "\n").compactMap { line -> (String, Int)? in
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, let first = parts[1].split(whereSeparator: \.isWhitespace).first, let number = Int(first)
      else { return nil }
      return (String(parts[0]), number)
    }
    return Dictionary(pairs, uniquingKeysWith: { $1 })
  }
}

/// The resources that a server's process used during a load: the difference between two samples.
struct ServerUse: Sendable {
  private let cpuSeconds: Double
  /// The load in cores; more than 1 is possible with several threads.
  let load: Double
  let residentBytes: Int
  let voluntarySwitches: Int
  let involuntarySwitches: Int
  /// The load by all other processes, in cores, which disturbs the measurement.
  let othersLoad: Double

  /// The load by other processes above which a turn counts as disturbed, in cores.
  static let disturbanceThreshold = 0.2

  init(before: ServerUsageProbe.Sample, after: ServerUsageProbe.Sample, seconds: Double) {
    cpuSeconds = Double(after.cpuNanoseconds - before.cpuNanoseconds) / 1e9
    load = cpuSeconds / seconds
    residentBytes = after.residentBytes
    voluntarySwitches = after.voluntarySwitches - before.voluntarySwitches
    involuntarySwitches = after.involuntarySwitches - before.involuntarySwitches
    let own = after.ownSeconds - before.ownSeconds
    othersLoad = max(0, after.machineSeconds - before.machineSeconds - own - cpuSeconds) / seconds
  }

  /// Returns the CPU time per request, in microseconds.
  func cpuMicroseconds(perRequestOf requests: Int) -> Double { cpuSeconds * 1e6 / Double(max(1, requests)) }
}
