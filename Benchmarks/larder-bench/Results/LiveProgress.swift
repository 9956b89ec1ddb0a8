import Glibc
import Platform

/// One line on the terminal that tells how far a run is, and nothing where standard error is no terminal.
final class LiveProgress {
  private let isTerminal = isatty(STDERR_FILENO) == 1
  private var last: (what: String, seconds: Double, answered: Int) = ("", 0, 0)

  func show(_ what: String, _ snapshot: LoadSnapshot) {
    guard isTerminal else { return }
    if last.what != what || snapshot.seconds < last.seconds { last = (what, 0, 0) }
    let passed = max(1e-3, snapshot.seconds - last.seconds)
    let rate = Double(snapshot.answered - last.answered) / passed
    last = (what, snapshot.seconds, snapshot.answered)
    let failures = snapshot.failures > 0 ? ", \(snapshot.failures) errors" : ""
    write(
      "\(what): \(decimal(snapshot.seconds, 1)) s, \(grouped(Double(snapshot.answered))) requests, \(grouped(rate))/s\(failures)"
    )
  }

  func show(_ text: String) {
    guard isTerminal else { return }
    write(text)
  }

  /// Takes the line away.
  func clear() {
    guard isTerminal else { return }
    write("")
  }

  private func write(_ text: String) {
    var line = "\r\u{1B}[K" + text
    line.withUTF8 { _ = unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
