import Dispatch
import LarderServer
import Platform
import Systemd

/// Reads the configuration again and applies what can change without a restart, on a thread of its own: files on a disk
/// that doesn't respond must not keep signals waiting.
///
/// The main thread asks for it. `current` is used only on `queue`; what else changes is behind a lock.
///
/// Safe because of that.
final class Reloader: @unchecked Sendable {
  private let server: Server
  private let loader: SettingsLoader
  private let credentials: TLSCredentials?
  private let audit: AuditWriter
  private let log: EventLog
  private let completion: @Sendable (_ remark: String?) -> Void
  private let queue = DispatchQueue(label: "larder.reload")
  /// Whether a reload waits for its turn. One is enough for any number of signals.
  private let isWaiting = Lock(false)
  /// Whether nothing may change any more. Locked while something does.
  private let isStopped = Lock(false)
  /// The settings in effect.
  private var current: ResolvedSettings

  /// - Parameter completion: Called after each reload, with a remark for the service manager's status.
  init(
    of server: Server, _ current: ResolvedSettings, _ loader: SettingsLoader, _ credentials: TLSCredentials?,
    _ audit: AuditWriter, _ log: EventLog, _ completion: @escaping @Sendable (_ remark: String?) -> Void
  ) {
    (self.server, self.current, self.loader, self.credentials) = (server, current, loader, credentials)
    (self.audit, self.log, self.completion) = (audit, log, completion)
  }

  /// Begins a reload, unless another one is about to begin.
  func reload() {
    let isNeeded = isWaiting.withLock { isWaiting in
      defer { isWaiting = true }
      return !isWaiting
    }
    guard isNeeded else { return }
    queue.async { [self] in
      isWaiting.withLock { $0 = false }
      ServiceManager.reloading()
      audit.reopen()
      let remark = apply()
      if !isStopped.withLock({ $0 }) { completion(remark) }
    }
  }

  /// Waits for changes that are being made, and prevents further ones. Doesn't wait for files that are being read.
  func stop() { isStopped.withLock { $0 = true } }

  /// Reads everything, and then makes the changes. If anything is wrong, changes nothing.
  /// - Returns: A remark for the service manager's status.
  private func apply() -> String? {
    do {
      let (next, changed, pending) = try current.reloaded(loader.load())
      let tokens = try TokenTable(file: next.settings.tokens)
      let certificates = try credentials?.prepareReload(next.settings.tls)
      let isDone = try isStopped.withLock { isStopped in
        if !isStopped { try change(to: next.settings, tokens, certificates) }
        return !isStopped
      }
      guard isDone else { return nil }
      report(next.settings, changed)
      current = next
      if pending.isEmpty { return nil }
      log.warning("some changes require a restart", ["keys": pending.joined(separator: ", ")])
      return "a restart is needed for \(pending.joined(separator: ", "))"
    } catch {
      let problems = (error as? SettingsError)?.problems ?? ["\(error)"]
      for problem in problems { log.error("the configuration was not reloaded: \(problem)") }
      server.record(AuditEvent(.reloaded, reason: problems.joined(separator: "; ")))
      return "the configuration was not reloaded: \(problems[0])"
    }
  }

  private func change(to settings: Settings, _ tokens: TokenTable, _ certificates: TLSConfiguration?) throws {
    let configuration = settings.server
    try server.change(
      stores: configuration.stores, limits: configuration.limits, rules: configuration.accessRules,
      roles: configuration.accessRoles,
      certificates: certificates?.status ?? credentials?.status ?? CertificateStatus(), tokens: tokens)
    guard let credentials, let certificates else { return }
    credentials.use(certificates)
    log.notice("new connections use the new certificates")
    log.report(credentials)
  }

  private func report(_ settings: Settings, _ changed: [String]) {
    log.setLevel(settings.logLevel)
    let keys = changed.joined(separator: ", ")
    log.notice("reloaded the configuration", ["changed": keys])
    server.record(AuditEvent(.reloaded, object: keys))
    if settings.server.accessRules.isEmpty, !current.settings.server.accessRules.isEmpty {
      log.warning("every client that can connect now has all rights, because access no longer has any rules")
    }
    log.report(listenersOf: server)
  }
}
