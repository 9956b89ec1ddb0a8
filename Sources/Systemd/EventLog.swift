import CSystemd
import Glibc
import Synchronization

/// The server's log: one line per event, with fields. It must not contain secrets or the contents of stores.
///
/// The journal receives each field separately. Elsewhere an event is a line such as
/// `2026-11-23T07:50:05.123Z larderd: opened a store store=orders entries=5`, in UTC; on a terminal it begins with the
/// local time of day, such as `08:50:05`.
package final class EventLog: Sendable {
  package enum Form: Sendable {
    /// Entries in the journal's own protocol.
    case journal
    /// Lines that begin with `<priority>`, which the journal understands, for when its socket is out of reach:
    /// sd-daemon(3).
    case prefixed
    /// Lines that begin with the date and time of RFC 3339, in UTC, and the program's name.
    case dated
    /// Lines that begin with the local time of day and the program's name, for a terminal.
    case timed
  }

  /// The name of the program.
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

  /// Sets the lowest level of the events that the log contains.
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

  /// - Parameter fields: The event's fields. Names are lowercase, with `_` between words.
  private func write(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, String>) {
    guard level.priority <= priority.load(ordering: .relaxed) else { return }
    let text = Self.line(message, fields)
    let named = level <= .warning ? "\(name): \(level): \(text)" : "\(name): \(text)"
    switch form {
    case .journal:
      JournalEntry(
        [
          ("MESSAGE", text), ("PRIORITY", "\(level.priority)"), ("SYSLOG_IDENTIFIER", name),
        ] + fields.map { ("LARDER_" + $0.key.uppercased(), $0.value) }
      ).send()
    case .prefixed: put("<\(level.priority)>\(text)")
    case .dated: put("\(Timestamp.now.date) \(named)")
    case .timed: put("\(Timestamp.now.timeOfDay) \(named)")
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

  /// Returns the text with characters that would break the line or trick a terminal replaced by their numbers.
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
  /// The form that suits this process's standard error.
  package static var ofStandardError: EventLog.Form {
    guard JournalEntry.isStandardErrorTheJournal else { return isatty(STDERR_FILENO) == 1 ? .timed : .dated }
    return JournalEntry.canBeSent ? .journal : .prefixed
  }
}

/// The importance of an event, by the journal's priorities.
package enum LogLevel: String, CaseIterable, Sendable, Comparable {
  case error, warning, notice, info, debug

  /// The priority of syslog(3). The lower it is, the more severe is the event.
  package var priority: Int {
    switch self {
    case .error: 3
    case .warning: 4
    case .notice: 5
    case .info: 6
    case .debug: 7
    }
  }

  package static func < (one: LogLevel, other: LogLevel) -> Bool { one.priority < other.priority }
}

/// An entry of the journal, sent by the journal's own protocol: sd_journal_sendv(3).
struct JournalEntry {
  private var bytes: [UInt8] = []
  private var ends: [Int] = []

  init(_ fields: [(name: String, value: String)]) {
    for field in fields {
      bytes += "\(field.name)=\(field.value)".utf8
      ends.append(bytes.count)
    }
  }

  func send() {
    unsafe bytes.withUnsafeBytes { bytes in
      var (vectors, start): ([iovec], Int) = (unsafe [], 0)
      for end in ends {
        let field = unsafe bytes[start..<end]
        unsafe vectors.append(
          iovec(
            iov_base: UnsafeMutableRawPointer(mutating: UnsafeRawBufferPointer(rebasing: field).baseAddress),
            iov_len: field.count))
        start = end
      }
      _ = unsafe sd_journal_sendv(vectors, Int32(vectors.count))
    }
  }

  /// Whether this process's standard error goes to the journal: `JOURNAL_STREAM` of systemd.exec(5).
  static var isStandardErrorTheJournal: Bool {
    guard let value = unsafe getenv("JOURNAL_STREAM").map({ unsafe String(cString: $0) }) else { return false }
    let parts = value.split(separator: ":")
    var status = stat()
    guard parts.count == 2, unsafe fstat(STDERR_FILENO, &status) == 0 else { return false }
    return UInt64(parts[0]) == UInt64(status.st_dev) && UInt64(parts[1]) == UInt64(status.st_ino)
  }

  /// Whether the journal's socket is within reach. If it isn't, the library drops entries silently.
  static var canBeSent: Bool { unsafe access("/run/systemd/journal/socket", W_OK) == 0 }
}
