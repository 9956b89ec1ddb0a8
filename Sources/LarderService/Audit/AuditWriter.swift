import Documents
import LarderServer
import Platform
import Systemd

/// Writes the events of the audit as lines of JSON, to a file or to the log, or only the acts of administrators to the log,
/// as any other line of it. If the file can't be written, its lines go to the log.
///
/// Used by any thread; what changes is behind a lock, which is held while the file is written.
final class AuditWriter: Sendable {
  private let destination: AuditDestination
  private let log: EventLog
  private let file: Lock<OpenFile>

  private struct OpenFile: ~Copyable {
    /// Nil for an audit without a file.
    var file: RotatingFile?
    /// Whether the log says that it can't be written.
    var hasFailed = false
  }

  /// - Throws: `AuditFileError` if the file can't be written.
  init(_ destination: AuditDestination, _ log: EventLog) throws(AuditFileError) {
    (self.destination, self.log) = (destination, log)
    guard case .file(let path, let maxSize) = destination else {
      file = Lock(OpenFile())
      return
    }
    var opened = RotatingFile(path, maxSize: maxSize)
    do { try opened.append([]) } catch { throw AuditFileError(path: path, "\(error)") }
    file = Lock(OpenFile(file: opened))
  }

  /// Whether clients that are let in are written.
  var includesAuthentications: Bool { destination != .acts }

  /// Opens the file again, because it may have been renamed.
  func reopen() { file.withLock { $0.file?.close() } }

  func write(_ events: [AuditEvent]) {
    switch destination {
    case .acts: for event in events { log.report(event) }
    case .log: for event in events { log.notice(Self.line(event)) }
    case .file(let path, _):
      let lines = events.map { Self.line($0) + "\n" }
      guard let failure = append(Array(lines.joined().utf8)) else { return }
      if failure.isFirst { log.error("\(AuditFileError(path: path, failure.reason)); the audit goes to the log") }
      for event in events { log.notice(Self.line(event)) }
    }
  }

  /// - Returns: Why the file can't be written; nil if it was.
  private func append(_ bytes: [UInt8]) -> (reason: String, isFirst: Bool)? {
    file.withLock { open in
      do throws(RotatingFile.WriteError) { try open.file?.append(bytes) } catch {
        defer { open.hasFailed = true }
        return ("\(error)", !open.hasFailed)
      }
      open.hasFailed = false
      return nil
    }
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
  /// A file of a maximum size, in bytes, and its predecessors have everything, as lines of JSON.
  case file(String, maxSize: Int)

  static let defaultMaxSize = 64 << 20
}

/// The audit's file can't be written.
struct AuditFileError: Error, CustomStringConvertible {
  let description: String

  init(path: String, _ reason: String) { description = "audit: \(path): \(reason)" }
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
