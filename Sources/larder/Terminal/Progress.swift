import Glibc
import Platform

/// A line on the terminal that says how far some work is. Not a word when standard error is something else.
struct Progress {
  private static let barWidth = 24
  private static let pauseMilliseconds: UInt64 = 100

  private let isShown = isatty(STDERR_FILENO) == 1
  /// What is counted, such as entries.
  private let noun: String
  /// How much there is to do, in bytes or whatever `show` is told, when it is known.
  private let total: Int?
  private let began = monotonicMilliseconds()
  private var nextUpdate: UInt64
  private var isOnScreen = false

  init(_ noun: String = "entries", total: Int?) {
    self.noun = noun
    self.total = total
    nextUpdate = began + Self.pauseMilliseconds
  }

  /// - Parameters:
  ///   - count: of what the noun says.
  ///   - done: how much of the total.
  mutating func show(_ count: Int, done: Int) {
    guard isShown else { return }
    let now = monotonicMilliseconds()
    guard now >= nextUpdate else { return }
    nextUpdate = now + Self.pauseMilliseconds
    isOnScreen = true
    let elapsed = max(1, now - began)
    var line = "\(HumanReadable.number(count)) \(noun), \(rate(count, elapsed))"
    if let total, total > 0, done > 0 {
      let part = min(1, Double(done) / Double(total))
      let filled = Int(part * Double(Self.barWidth))
      let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: Self.barWidth - filled)
      let left = UInt64(Double(elapsed) * (1 - part) / part / 1_000)
      line = "\(bar) \(Int(part * 100))%  \(line), \(HumanReadable.time(seconds: left)) left"
    }
    Self.write("\r\(line)\u{1B}[K")
  }

  /// Takes the line off the screen.
  mutating func clear() {
    guard isOnScreen else { return }
    isOnScreen = false
    Self.write("\r\u{1B}[K")
  }

  /// - Parameter verb: what was done, such as loaded.
  mutating func finish(_ verb: String, _ count: Int, bytes: Int) {
    clear()
    guard isShown else { return }
    let elapsed = max(1, monotonicMilliseconds() - began)
    let seconds = "\(elapsed / 1_000).\(elapsed / 100 % 10) s"
    let amount = "\(HumanReadable.number(count)) \(noun) (\(HumanReadable.bytes(UInt64(bytes))))"
    logLine("\(verb) \(amount) in \(seconds), \(rate(count, elapsed))")
  }

  private func rate(_ count: Int, _ milliseconds: UInt64) -> String {
    "\(HumanReadable.number(count * 1_000 / Int(milliseconds)))/s"
  }

  private static func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
