import CSystemd
import Glibc
import Platform
import Synchronization

/// The server's log: an event a line, with fields. Never write secrets or what clients keep in their stores.
///
/// The journal gets each field as a field of its own. Whoever else reads standard error gets lines such as
/// `larderd: opened a store store=orders entries=5`.
package final class EventLog: Sendable {
  package enum Form: Sendable {
    /// The journal's own protocol.
    case journal
    /// Lines that begin with `<priority>`, which the journal understands, for where its socket can't be reached: sd-daemon(3).
    case prefixed
    case plain
  }

  /// The name of the program, which begins each line.
  private let name: String
  private let form: Form
  private let descriptor: Int32
  private let priority: Atomic<Int>

  package init(
    _ name: String, form: Form = .ofStandardError, descriptor: Int32 = STDERR_FILENO, level: LogLevel = .info
  ) {
    self.name = name
    self.form = form
    self.descriptor = descriptor
    priority = Atomic(level.priority)
  }

  /// Events that matter less than this one are left out.
  package func setLevel(_ level: LogLevel) { priority.store(level.priority, ordering: .relaxed) }

  package func error(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) {
    write(.error, message, fields)
  }

  package func warning(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) {
    write(.warning, message, fields)
  }

  package func notice(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) {
    write(.notice, message, fields)
  }

  package func info(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { write(.info, message, fields) }

  package func debug(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) {
    write(.debug, message, fields)
  }

  /// - Parameter fields: their names in small letters, with `_` between words.
  private func write(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, String>) {
    guard level.priority <= priority.load(ordering: .relaxed) else { return }
    let text = Self.line(message, fields)
    switch form {
    case .journal:
      JournalEntry(
        [
          ("MESSAGE", text), ("PRIORITY", "\(level.priority)"), ("SYSLOG_IDENTIFIER", name),
        ] + fields.map { ("LARDER_" + $0.key.uppercased(), $0.value) }
      ).send()
    case .prefixed: put("<\(level.priority)>\(text)")
    case .plain: put(level <= .warning ? "\(name): \(level): \(text)" : "\(name): \(text)")
    }
  }

  private func put(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { _ = unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
  }

  private static func line(_ message: String, _ fields: KeyValuePairs<String, String>) -> String {
    fields.reduce(into: escaped(message)) { $0 += " \($1.key)=\(quoted($1.value))" }
  }

  private static func quoted(_ value: String) -> String {
    let isPlain = !value.isEmpty && value.unicodeScalars.allSatisfy { $0.value > 32 && $0 != "\"" && $0 != "=" }
    if isPlain { return escaped(value) }
    return "\"\(escaped(value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")))\""
  }

  /// What would break the line or trick a terminal is shown by its number.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0..<32, 127..<160, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069:
        result += "\\u{\(String(scalar.value, radix: 16))}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension EventLog.Form {
  /// What suits this process's standard error.
  package static var ofStandardError: EventLog.Form {
    guard JournalEntry.isStandardErrorTheJournal else { return .plain }
    return JournalEntry.canBeSent ? .journal : .prefixed
  }
}
