import Glibc
import Platform

/// A line on the terminal that says how far a load is. Not a word when standard error is something else.
struct LoadProgress {
  private static let barWidth = 24
  private static let pauseMilliseconds: UInt64 = 100

  private let isShown = isatty(STDERR_FILENO) == 1
  /// Bytes of the input, when they are known.
  private let size: Int?
  private let began = monotonicMilliseconds()
  private var nextUpdate: UInt64
  private var isOnScreen = false

  init(size: Int?) {
    self.size = size
    nextUpdate = began + Self.pauseMilliseconds
  }

  mutating func show(loaded: Int, bytes: Int) {
    guard isShown else { return }
    let now = monotonicMilliseconds()
    guard now >= nextUpdate else { return }
    nextUpdate = now + Self.pauseMilliseconds
    isOnScreen = true
    let elapsed = max(1, now - began)
    var line = "\(Readable.number(loaded)) entries, \(rate(loaded, elapsed))"
    if let size, size > 0, bytes > 0 {
      let part = min(1, Double(bytes) / Double(size))
      let filled = Int(part * Double(Self.barWidth))
      let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: Self.barWidth - filled)
      let left = UInt64(Double(elapsed) * (1 - part) / part / 1_000)
      line = "\(bar) \(Int(part * 100))%  \(line), \(Readable.time(seconds: left)) left"
    }
    Self.write("\r\(line)\u{1B}[K")
  }

  /// Takes the line off the screen.
  mutating func clear() {
    guard isOnScreen else { return }
    isOnScreen = false
    Self.write("\r\u{1B}[K")
  }

  mutating func finish(loaded: Int, bytes: Int) {
    clear()
    guard isShown else { return }
    let elapsed = max(1, monotonicMilliseconds() - began)
    let seconds = "\(elapsed / 1_000).\(elapsed / 100 % 10) s"
    logLine(
      "loaded \(Readable.number(loaded)) entries (\(Readable.bytes(UInt64(bytes)))) in \(seconds), \(rate(loaded, elapsed))"
    )
  }

  private func rate(_ loaded: Int, _ milliseconds: UInt64) -> String {
    "\(Readable.number(loaded * 1_000 / Int(milliseconds)))/s"
  }

  private static func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
