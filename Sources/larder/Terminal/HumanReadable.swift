import Glibc

/// Numbers, durations and dates in the form that people read.
enum HumanReadable {
  /// Returns a statistic in larger units; an empty string if it has none.
  static func statistic(_ name: String, _ value: UInt64) -> String {
    if name.hasSuffix("_bytes") || name.hasSuffix("_bytes_total"), value >= 1_024 { return bytes(value) }
    if name.hasSuffix("_nanoseconds") { return duration(nanoseconds: value) }
    if name.hasSuffix("_milliseconds"), value >= 1_000 { return time(seconds: value / 1_000) }
    if name == "read_only" {
      return value == 0 ? "no" : "yes: writing to its files failed; restart the server after fixing them"
    }
    return ""
  }

  static func bytes(_ count: UInt64) -> String {
    let (tenths, overflow) = count.multipliedReportingOverflow(by: 10)
    var amount = overflow ? .max : tenths
    for unit in ["B", "KiB", "MiB", "GiB"] {
      if amount < 10_240 { return unit == "B" ? "\(count) B" : "\(amount / 10).\(amount % 10) \(unit)" }
      amount /= 1_024
    }
    return "\(amount / 10).\(amount % 10) TiB"
  }

  /// Returns a duration such as `16 µs`, `2.1 ms` or `4.3 s`.
  static func duration(nanoseconds: UInt64) -> String {
    if nanoseconds == .max { return "longer" }
    let microseconds = nanoseconds / 1_000
    if microseconds < 1_000 { return "\(microseconds) µs" }
    let (amount, unit) = microseconds < 1_000_000 ? (microseconds / 100, "ms") : (microseconds / 100_000, "s")
    return "\(amount / 10).\(amount % 10) \(unit)"
  }

  /// Returns a duration such as `42s`, `3m 07s`, `5h 12m` or `8d 03h`.
  static func time(seconds: UInt64) -> String {
    func twoDigits(_ number: UInt64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return switch seconds {
    case ..<60: "\(seconds)s"
    case ..<3_600: "\(seconds / 60)m \(twoDigits(seconds % 60))s"
    case ..<86_400: "\(seconds / 3_600)h \(twoDigits(seconds / 60 % 60))m"
    default: "\(seconds / 86_400)d \(twoDigits(seconds / 3_600 % 24))h"
    }
  }

  /// Returns a date and a time such as `2026-11-21` and `07:50:05`, in UTC.
  static func dateAndTime(milliseconds: UInt64) -> (date: String, time: String) {
    var seconds = time_t(clamping: milliseconds / 1_000)
    var parts = unsafe tm()
    _ = unsafe gmtime_r(&seconds, &parts)
    let date = unsafe [parts.tm_year + 1_900, parts.tm_mon + 1, parts.tm_mday]
    let time = unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec]
    func joined(_ numbers: [Int32], separator: String) -> String {
      numbers.map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: separator)
    }
    return (joined(date, separator: "-"), joined(time, separator: ":"))
  }

  /// Returns a number with its digits in groups of three.
  static func number(_ number: Int) -> String {
    var groups = ""
    for (index, digit) in String(number).reversed().enumerated() {
      if index > 0 && index % 3 == 0 { groups.append(",") }
      groups.append(digit)
    }
    return String(groups.reversed())
  }

  /// Returns a number of items, such as `1 entry` or `1,234 entries`.
  /// - Parameter plural: The items' name, such as `entries` or `records`.
  static func amount(_ count: Int, _ plural: String = "entries") -> String {
    let singular = plural.hasSuffix("ies") ? plural.dropLast(3) + "y" : plural.dropLast()
    return "\(number(count)) \(count == 1 ? String(singular) : plural)"
  }

  /// Returns a user's name, or the number if the user has no name on this machine.
  static func user(_ number: UInt32) -> String {
    guard let entry = unsafe getpwuid(number) else { return "\(number)" }
    return unsafe String(cString: entry.pointee.pw_name)
  }
}
