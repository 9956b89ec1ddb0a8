import ArgumentParser
import Platform

/// A server's protocol and address, such as `larder:unix:/p` or `resp:tcp:127.0.0.1:6379`.
struct TargetArgument {
  let protocolName: TargetProtocol
  let address: Address

  init(_ text: String) throws {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let name = TargetProtocol(rawValue: parts[0]) else {
      throw ValidationError(
        "'\(text)' is not a target: give larder:, resp:, memcached: or echo: and an address, such as resp:unix:/run/redis.sock."
      )
    }
    protocolName = name
    do { address = try Address(parts[1]) } catch { throw ValidationError("\(error)") }
  }
}

/// A duration such as `500ms`, `10s` or `2m`.
struct DurationArgument {
  let duration: Duration

  init(_ text: String) throws {
    let units: [(String, Double)] = [("ms", 1e-3), ("s", 1), ("m", 60)]
    for (suffix, scale) in units where text.hasSuffix(suffix) {
      guard let number = Double(text.dropLast(suffix.count)), number > 0, number * scale <= 86_400 else { break }
      duration = .milliseconds(Int64((number * scale * 1_000).rounded(.up)))
      return
    }
    throw ValidationError("'\(text)' is not a duration of up to a day, such as 500ms, 10s or 2m.")
  }
}

/// A percentage such as `10%`.
struct PercentArgument {
  let fraction: Double

  init(_ text: String) throws {
    guard text.hasSuffix("%"), let number = Double(text.dropLast()), number >= 0, number.isFinite else {
      throw ValidationError("'\(text)' is not a percentage such as 10%.")
    }
    fraction = number / 100
  }
}

extension Distribution: ExpressibleByArgument {}

/// Numbers of tasks such as `1,64,1024`.
struct TaskCounts {
  let counts: [Int]

  init(counts: [Int]) { self.counts = counts }

  init(_ text: String) throws {
    counts = text.split(separator: ",", omittingEmptySubsequences: false).compactMap { Int($0) }
    guard counts.count == text.split(separator: ",", omittingEmptySubsequences: false).count,
      counts.allSatisfy({ (1...100_000).contains($0) })
    else { throw ValidationError("'\(text)' is not a list of task counts such as 1,64,1024.") }
  }
}
