import Basics

/// What a durable store promises of a write that it has answered.
package enum Durability: Equatable, Sendable {
  /// It is on the disk.
  case always
  /// It will be on the disk after that time at the latest, unless the machine ends before: so much can be lost.
  case interval(Duration)
  /// It will be on the disk when the system sees fit.
  case none
}

extension Durability: CustomStringConvertible {
  /// The longest interval, in milliseconds: an hour.
  package static let maximumIntervalMilliseconds = 3_600_000

  /// Reads `always`, `none`, or `interval:` and a whole number of `s` or `ms`, up to an hour; nil for anything else.
  package init?(_ text: String) {
    switch text {
    case "always": self = .always
    case "none": self = .none
    default:
      guard text.hasPrefix("interval:") else { return nil }
      let time = text.dropFirst("interval:".count)
      let (unit, scale) = time.hasSuffix("ms") ? (2, 1) : (1, 1_000)
      guard time.hasSuffix("s"), let number = Int(digits: time.dropLast(unit)) else { return nil }
      let (milliseconds, overflows) = number.multipliedReportingOverflow(by: scale)
      guard !overflows, (1...Self.maximumIntervalMilliseconds).contains(milliseconds) else { return nil }
      self = .interval(.milliseconds(milliseconds))
    }
  }

  /// As it is read.
  package var description: String {
    switch self {
    case .always: return "always"
    case .none: return "none"
    case .interval(let time):
      let milliseconds = time.wholeMilliseconds
      return milliseconds % 1_000 == 0 ? "interval:\(milliseconds / 1_000)s" : "interval:\(milliseconds)ms"
    }
  }
}
