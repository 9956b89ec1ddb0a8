import Glibc
import Platform

/// A progress line on the terminal. Does nothing if standard error is not a terminal.
final class LiveProgress {
  private let isTerminal = isatty(STDERR_FILENO) == 1
  private var last: (work: String, seconds: Double, answered: Int) = ("", 0, 0)

  func show(_ work: String, _ snapshot: LoadSnapshot) {
    guard isTerminal else { return }
    if last.work != work || snapshot.seconds < last.seconds { last = (work, 0, 0) }
    let elapsed = max(1e-3, snapshot.seconds - last.seconds)
    let rate = Double(snapshot.answered - last.answered) / elapsed
    last = (work, snapshot.seconds, snapshot.answered)
    let failures = snapshot.failures > 0 ? ", \(snapshot.failures) errors" : ""
    write(
      "\(work): \(decimal(snapshot.seconds, 1)) s, \(grouped(Double(snapshot.answered))) requests, \(grouped(rate))/s\(failures)"
    )
  }

  func show(_ text: String) {
    guard isTerminal else { return }
    write(text)
  }

  /// Clears the line.
  func clear() {
    guard isTerminal else { return }
    write("")
  }

  private func write(_ text: String) {
    var line = "\r\u{1B}[K" + text
    line.withUTF8 { _ = unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
