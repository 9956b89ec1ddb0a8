import Basics
import LarderServer
import Platform

extension ServerConfiguration.NamedStore {
  /// Reads `NAME=ENGINE[?option=value&…]`.
  init(_ text: String) throws {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw Setting.Mistake("'\(text)' is not NAME=ENGINE, as in sessions=memory") }
    try self.init(name: String(parts[0]), String(parts[1]))
  }
}

/// `USER`, `USER:GROUP` or `:GROUP`.
struct FileOwner {
  let user: UInt32?
  let group: UInt32?

  init(_ text: String) throws(Setting.Mistake) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    user = parts.first.flatMap(userID)
    group = parts.count == 2 ? groupID(parts[1]) : nil
    guard user != nil || parts[0].isEmpty else { throw Setting.Mistake("there is no user '\(parts[0])'") }
    guard parts.count == 1 || group != nil else { throw Setting.Mistake("there is no group '\(parts[1])'") }
    guard user != nil || group != nil else {
      throw Setting.Mistake("'\(text)' names no owner, as larder:larder does")
    }
  }
}

extension Duration {
  /// Reads a whole number above zero of ms, s, m or h; nil for anything else, and above 10 years.
  init?(text: String) {
    let units: [(suffix: String, milliseconds: Int64)] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)]
    guard let unit = units.first(where: { text.hasSuffix($0.suffix) }),
      let number = Int64(digits: text.dropLast(unit.suffix.count)), number > 0,
      number <= 315_360_000_000 / unit.milliseconds
    else { return nil }
    self = .milliseconds(number * unit.milliseconds)
  }
}
