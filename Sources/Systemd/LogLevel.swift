/// How much an event matters, as the journal's priorities have it.
package enum LogLevel: String, CaseIterable, Sendable, Comparable {
  case error, warning, notice, info, debug

  /// Of syslog(3): the lower, the graver.
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
