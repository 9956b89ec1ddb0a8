import Glibc
import Platform

/// A progress line on standard error. Prints nothing if that is not a terminal.
struct Progress {
  private static let barWidths = 5...24
  private static let updateIntervalMilliseconds: UInt64 = 100
  private static let maxRemainingSeconds = 1e10

  private let isShown = isatty(STDERR_FILENO) == 1
  /// The plural of what is counted, such as entries.
  private let noun: String
  /// The amount of all work, in the unit of `done`, if it is known.
  private let total: Int?
  private let startTime = monotonicMilliseconds()
  private var nextUpdate: UInt64
  private var isOnScreen = false

  init(_ noun: String = "entries", total: Int?) {
    self.noun = noun
    self.total = total
    nextUpdate = startTime + Self.updateIntervalMilliseconds
  }

  /// Updates the line, at most ten times a second.
  /// - Parameters:
  ///   - count: The number of items so far; nil if it isn't known.
  ///   - done: The part of the total that is done.
  mutating func show(_ count: Int?, done: Int) {
    guard isShown else { return }
    let now = monotonicMilliseconds()
    guard now >= nextUpdate else { return }
    nextUpdate = now + Self.updateIntervalMilliseconds
    isOnScreen = true
    let line = Self.line(
      count, noun, done: done, total: total, milliseconds: max(1, now - startTime),
      width: Terminal.size(of: STDERR_FILENO).width)
    Terminal.write("\r\(line)\u{1B}[K", to: STDERR_FILENO)
  }

  /// Returns the longest line that leaves the last column free.
  static func line(
    _ count: Int?, _ noun: String, done: Int, total: Int?, milliseconds: UInt64, width: Int
  ) -> String {
    let amount = count.map { HumanReadable.number($0) }
    let speed = count.map { rate($0, milliseconds) }
    var fraction: Double?
    if let total, total > 0, done > 0 { fraction = min(1, Double(done) / Double(total)) }
    let remaining = fraction.map { fraction in
      // A server can announce any number of entries.
      let seconds = min(Double(milliseconds) * (1 - fraction) / fraction / 1_000, Self.maxRemainingSeconds)
      return HumanReadable.time(seconds: UInt64(seconds)) + " left"
    }
    // From everything to what matters most.
    let choices = [
      [amount.map { "\($0) \(noun)" }, speed, remaining], [speed, remaining], [remaining ?? amount],
    ].map { $0.compactMap(\.self).joined(separator: ", ") }
    guard let fraction else {
      return choices.first { $0.count < width } ?? String(choices[2].prefix(max(0, width - 1)))
    }
    let percent = " \(Int(fraction * 100))%"
    for text in choices + [""] {
      let details = text.isEmpty ? percent : "\(percent)  \(text)"
      let barWidth = min(width - 1 - details.count, barWidths.upperBound)
      if barWidth >= barWidths.lowerBound { return bar(fraction, width: barWidth) + details }
    }
    return String(percent.dropFirst().prefix(max(0, width - 1)))
  }

  private static func bar(_ fraction: Double, width: Int) -> String {
    let filled = Int(fraction * Double(width))
    return String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
  }

  /// Erases the line.
  mutating func clear() {
    guard isOnScreen else { return }
    isOnScreen = false
    Terminal.write("\r\u{1B}[K", to: STDERR_FILENO)
  }

  /// Replaces the line with a summary.
  /// - Parameters:
  ///   - verb: What was done, such as loaded.
  ///   - indexes: The number of indexes that were part of it.
  mutating func finish(_ verb: String, _ count: Int, indexes: Int = 0, bytes: Int) {
    clear()
    guard isShown else { return }
    let elapsed = max(1, monotonicMilliseconds() - startTime)
    let seconds = "\(elapsed / 1_000).\(elapsed / 100 % 10) s"
    let amount = "\(HumanReadable.amount(count, noun)) (\(HumanReadable.bytes(UInt64(bytes))))"
    let others = indexes == 0 ? "" : indexes == 1 ? " and an index" : " and \(indexes) indexes"
    logLine("\(verb) \(amount)\(others) in \(seconds), \(Self.rate(count, elapsed))")
  }

  private static func rate(_ count: Int, _ milliseconds: UInt64) -> String {
    "\(HumanReadable.number(count * 1_000 / Int(milliseconds)))/s"
  }
}
