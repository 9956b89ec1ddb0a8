import ArgumentParser
import Platform

/// A server and how it is spoken to: `larder:unix:/p`, `resp:tcp:127.0.0.1:6379` …
struct TargetArgument {
  let protocolName: TargetProtocol
  let address: Address

  init(_ text: String) throws {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let name = TargetProtocol(rawValue: parts[0]) else {
      throw ValidationError(
        "'\(text)' is not larder:, resp:, memcached: or echo: and an address, as in resp:unix:/run/redis.sock.")
    }
    protocolName = name
    do { address = try Address(parts[1]) } catch { throw ValidationError("\(error)") }
  }
}

/// A length of time: `500ms`, `10s`, `2m`.
struct DurationArgument {
  let duration: Duration

  init(_ text: String) throws {
    let units: [(String, Double)] = [("ms", 1e-3), ("s", 1), ("m", 60)]
    for (suffix, scale) in units where text.hasSuffix(suffix) {
      guard let number = Double(text.dropLast(suffix.count)), number > 0, number * scale <= 86_400 else { break }
      duration = .milliseconds(Int64((number * scale * 1_000).rounded(.up)))
      return
    }
    throw ValidationError("'\(text)' is not a length of time up to a day, as 500ms, 10s and 2m are.")
  }
}

/// A part of the whole: `10%`.
struct PercentArgument {
  let part: Double

  init(_ text: String) throws {
    guard text.hasSuffix("%"), let number = Double(text.dropLast()), number >= 0, number.isFinite else {
      throw ValidationError("'\(text)' is not a percentage, as 10% is.")
    }
    part = number / 100
  }
}

extension Distribution: ExpressibleByArgument {}
