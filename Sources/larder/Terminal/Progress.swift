import Glibc
import Platform

/// A progress line on standard error. Prints nothing if that is not a terminal.
struct Progress {
  private static let barWidth = 24
  private static let updateIntervalMilliseconds: UInt64 = 100

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
    let elapsed = max(1, now - startTime)
    var parts = count.map { ["\(HumanReadable.number($0)) \(noun)", rate($0, elapsed)] } ?? []
    var line = ""
    if let total, total > 0, done > 0 {
      let fraction = min(1, Double(done) / Double(total))
      let filled = Int(fraction * Double(Self.barWidth))
      let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: Self.barWidth - filled)
      let remaining = UInt64(Double(elapsed) * (1 - fraction) / fraction / 1_000)
      parts.append("\(HumanReadable.time(seconds: remaining)) left")
      line = "\(bar) \(Int(fraction * 100))%  "
    }
    line += parts.joined(separator: ", ")
    Terminal.write("\r\(line)\u{1B}[K", to: STDERR_FILENO)
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
    let amount = "\(HumanReadable.number(count)) \(noun) (\(HumanReadable.bytes(UInt64(bytes))))"
    let others = indexes == 0 ? "" : indexes == 1 ? " and an index" : " and \(indexes) indexes"
    logLine("\(verb) \(amount)\(others) in \(seconds), \(rate(count, elapsed))")
  }

  private func rate(_ count: Int, _ milliseconds: UInt64) -> String {
    "\(HumanReadable.number(count * 1_000 / Int(milliseconds)))/s"
  }
}
