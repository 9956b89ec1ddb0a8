import Foundation
import Glibc

/// redis-benchmark with one connection: the same calls by a client in C.
struct RedisBenchmark {
  let server: RunningServer
  let keys: Int

  static var isInstalled: Bool { Programs.find("redis-benchmark") != nil }

  /// Gets keys at random; they have the names that the load loop gives them.
  func run(pipeline: Int, requests: Int) throws -> ClientBench.Outcome {
    guard case .unix(let path) = server.address else { throw BenchError("the server has no Unix socket") }
    let before = Self.cpuOfChildren()
    let output = Programs.output(
      "redis-benchmark",
      ["-s", path, "-c", "1", "-P", "\(pipeline)", "-t", "get", "-n", "\(requests)", "-r", "\(keys)", "--csv"])
    let cpu = Self.cpuOfChildren() - before
    let line = output?.split(separator: "\n").last { $0.hasPrefix("\"GET\"") }
    guard let field = line?.split(separator: ",").dropFirst().first, let rate = Double(field.filter { $0 != "\"" }),
      rate > 0
    else { throw BenchError("redis-benchmark did not say how fast it was") }
    return ClientBench.Outcome(calls: requests, seconds: Double(requests) / rate, cpuSeconds: cpu)
  }

  /// Of children that have ended and were waited for; the server is not among them.
  private static func cpuOfChildren() -> Double {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
    let times = [usage.ru_utime, usage.ru_stime]
    return times.reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) * 1e-6 }
  }
}
