import Documents
import Glibc
import LarderServer
import Platform
import Systemd

/// Writes the events of the audit as lines of JSON, to a file or to the log, or only the acts of administrators to the log,
/// as any other line of it. If the file can't be written, its lines go to the log.
///
/// Used by any thread; what changes is behind a lock.
final class AuditWriter: Sendable {
  private let destination: AuditDestination
  private let log: EventLog
  private let file = Lock(OpenFile())

  /// The file, while it can be written.
  private struct OpenFile: ~Copyable {
    var descriptor: Descriptor?
    /// Whether the log says that it can't be written.
    var hasFailed = false

    /// Closes the file until the next event.
    /// - Returns: Whether it has failed for the first time.
    mutating func fail() -> Bool {
      descriptor = nil
      defer { hasFailed = true }
      return !hasFailed
    }
  }

  /// - Throws: `AuditFileError` if the file can't be written.
  init(_ destination: AuditDestination, _ log: EventLog) throws(AuditFileError) {
    (self.destination, self.log) = (destination, log)
    if case .file(let path) = destination { try write([], to: path) }
  }

  /// Whether clients that are let in are written.
  var includesAuthentications: Bool { destination != .acts }

  /// Opens the file again, because it may have been renamed.
  func reopen() { file.withLock { $0.descriptor = nil } }

  func write(_ events: [AuditEvent]) {
    switch destination {
    case .acts: for event in events { log.report(event) }
    case .log: for event in events { log.notice(Self.line(event)) }
    case .file(let path):
      let lines = events.map { Self.line($0) + "\n" }
      do throws(AuditFileError) { try write(Array(lines.joined().utf8), to: path) } catch {
        if file.withLock({ $0.fail() }) { log.error("\(error); the audit goes to the log") }
        for event in events { log.notice(Self.line(event)) }
      }
    }
  }

  private func write(_ bytes: [UInt8], to path: String) throws(AuditFileError) {
    try file.withLock { file throws(AuditFileError) in
      if file.descriptor == nil { file.descriptor = try Self.open(path) }
      guard let number = file.descriptor?.number else { return }
      var written = 0
      while written < bytes.count {
        let count = unsafe bytes.withUnsafeBytes {
          unsafe Glibc.write(number, $0.baseAddress! + written, $0.count - written)
        }
        guard count > 0 else { throw AuditFileError(path: path, SystemError("write")) }
        written += count
      }
      file.hasFailed = false
    }
  }

  private static func open(_ path: String) throws(AuditFileError) -> Descriptor {
    let number = unsafe Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
    guard number >= 0 else { throw AuditFileError(path: path, SystemError("open")) }
    return Descriptor(owning: number)
  }

  /// The event as a line of JSON, which begins with its time.
  static func line(_ event: AuditEvent) -> String {
    var json: JSONValue = ["time": .string(Timestamp(microsecondsSince1970: event.time).date)]
    for (name, value) in event.json.object ?? JSONObject() { json[name] = value }
    return String(decoding: json.encoded(), as: UTF8.self)
  }
}

/// Where the audit is written.
package enum AuditDestination: Equatable, Sendable {
  /// The log has only what administrators do.
  case acts
  /// The log has everything, as lines of JSON.
  case log
  /// A file has everything, as lines of JSON.
  case file(String)
}

/// The audit's file can't be written.
struct AuditFileError: Error, CustomStringConvertible {
  let description: String

  init(path: String, _ error: SystemError) { description = "audit: \(path): \(error.reason)" }
}

extension EventLog {
  /// Logs what an administrator has done. Refusals and reloads are logged anyway.
  fileprivate func report(_ event: AuditEvent) {
    let message: String
    switch event.kind {
    case .authenticated, .authenticationFailed, .refused, .reloaded: return
    case .storeCreated: message = "created a store"
    case .storeDropped: message = "dropped a store"
    case .storeMoved: message = "handed a store over to another server"
    case .storeEmptied: message = "deleted all entries of a store"
    case .indexCreated: message = "created an index"
    case .indexDeleted: message = "deleted an index"
    case .parameterChanged: message = "changed a parameter"
    case .tokenAdded: message = "accepts a token"
    case .tokenRemoved: message = "accepts a token no longer"
    case .eventsLost: message = "lost events of the audit"
    }
    guard event.reason == nil else { return }
    notice(
      message,
      [
        "store": event.store ?? "-", "object": event.object ?? "-",
        "client": event.client.map { client in client.principal ?? "\(client.peer)" } ?? "-",
        "listener": event.client.map { "\($0.listener)" } ?? "-", "count": "\(event.count ?? 1)",
      ])
  }
}
