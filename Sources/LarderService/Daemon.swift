import Basics
import Dispatch
import Glibc
import LarderServer
import Platform
import Storage
import Systemd
import WebConsole

/// The life of a server as a service, from opening its stores to the last reply. It reports each step to the service
/// manager and the log. Runs on the main thread.
package struct Daemon {
  /// The purpose of a socket that the service manager passes.
  private enum SocketPurpose {
    case clients, metrics
    /// A listening socket that an earlier larderd opened for an address in its settings.
    case stored
  }

  private let loader: SettingsLoader
  private let log: EventLog
  private let signals = SignalQueue()

  package init(_ loader: SettingsLoader, _ log: EventLog) {
    self.loader = loader
    self.log = log
  }

  /// Serves until SIGTERM or SIGINT. A second one ends the process at once.
  /// - Parameters:
  ///   - settings: The settings to start with.
  ///   - sockets: The sockets that the service manager passed. Without sockets and addresses, the server uses the
  ///     default address.
  /// - Throws: Any error that prevents the server from starting.
  package func run(_ settings: ResolvedSettings, sockets: [InheritedSocket]) throws {
    signal(SIGPIPE, SIG_IGN)
    raiseDescriptorLimit()
    var current = settings
    let credentials = try current.settings.tls.certificates.isEmpty ? nil : TLSCredentials(current.settings.tls)
    let audit = try AuditWriter(current.settings.audit, log)
    let server = try start(current.settings, sockets, credentials, audit)
    let status = Self.status(server)
    let watchdog = startWatchdog(server)
    let reminder = credentials.map(startReminder)
    ServiceManager.ready(status)
    while signals.next() == SIGHUP {
      ServiceManager.reloading()
      audit.reopen()
      let (reloaded, remark) = reload(server, credentials, current)
      current = reloaded
      ServiceManager.ready(remark.map { "\(status); \($0)" } ?? status)
    }
    signals.setTerminatesAtOnce(true)
    ServiceManager.stopping("completing received requests")
    log.notice("stopping")
    watchdog?.stop()
    reminder?.cancel()
    let stopped = DispatchSemaphore(value: 0)
    server.stop { stopped.signal() }
    stopped.wait()
    log.notice("stopped")
  }

  // MARK: Starting

  private func start(
    _ settings: Settings, _ sockets: [InheritedSocket], _ credentials: TLSCredentials?, _ audit: AuditWriter
  ) throws -> Server {
    log.setLevel(settings.logLevel)
    var configuration = settings.server
    let passed = Dictionary(grouping: sockets, by: Self.purpose(of:))
    configuration.sockets = passed[.clients] ?? []
    configuration.metricsSockets = passed[.metrics] ?? []
    if configuration.addresses.isEmpty, configuration.sockets.isEmpty { configuration.addresses = [.default] }
    if configuration.servesHTTP { configuration.httpAssets = try WebConsole.assets() }
    if DescriptorStore.isEnabled { configuration.keep = DescriptorStore.put }
    configuration.kept = adopt(passed[.stored] ?? [], for: configuration)
    let reporter = StartupProgressReporter()
    configuration.onOpeningProgress = { reporter.report($0) }
    configuration.onStoreOpened = { [log] name, opening in
      log.info(
        "opened a store",
        [
          "store": "\(name)", "entries": "\(opening.entries)", "revision": "\(opening.revision)",
          "milliseconds": "\(opening.milliseconds)",
        ])
      for remark in opening.remarks { log.warning(remark, ["store": "\(name)"]) }
    }
    configuration.onStoreDamaged = { [log] name, reason in
      log.error("this is damaged and not served: \(reason)", ["store": name])
    }
    // A SIGHUP that has arrived is in the queue; a SIGTERM would have ended the process. From here on there may be
    // clients to reply to.
    configuration.willServe = { [signals] in signals.setTerminatesAtOnce(false) }
    configuration.tokens = try TokenTable(file: settings.tokens)
    if let replication = try settings.replication.makeReplication(listening: configuration.addresses) {
      configuration.engines = .builtIn + [replication.engine]
      configuration.sharedStores = replication
    } else {
      configuration.engines = .known
    }
    configuration.onSharedStores = { [log] event in log.report(event) }
    if let credentials {
      forbidCoreDumps()
      configuration.secureLayer = { credentials.makeLayer($0) }
      configuration.certificates = credentials.status
      Self.report(credentials, to: log)
    }
    configuration.onRefusal = { [log] event in log.report(event) }
    configuration.auditing.write = { [audit] in audit.write($0) }
    configuration.auditing.includesAuthentications = audit.includesAuthentications
    if let path = configuration.dataPath, let warning = DataFolder(path: path).protect() {
      log.warning(warning, ["data": path])
    }
    let server = try Server(configuration)
    for listener in server.listeners {
      let name = listener.name.isEmpty ? "-" : listener.name
      log.notice("listening", ["address": "\(listener.address)", "name": name, "version": softwareVersion])
    }
    for address in server.metricsAddresses { log.notice("serving metrics", ["address": "\(address)"]) }
    warnAboutClosedListeners(server)
    if !server.damagedStores.isEmpty {
      log.error(
        "serving without damaged stores; clients get storeDamaged",
        ["stores": server.damagedStores.map(\.text).joined(separator: ", ")])
    }
    return server
  }

  /// The status that the service manager shows.
  private static func status(_ server: Server) -> String {
    let status = "serving on \(server.addresses.map(\.description).joined(separator: ", "))"
    guard !server.damagedStores.isEmpty else { return status }
    return "\(status), without damaged stores: \(server.damagedStores.map(\.text).joined(separator: ", "))"
  }

  /// Returns a socket's purpose, which its name determines. Sockets with any other name are for clients.
  private static func purpose(of socket: InheritedSocket) -> SocketPurpose {
    if socket.name == "metrics" { return .metrics }
    return socket.name.hasPrefix(ListeningSocket.preservedNamePrefix) ? .stored : .clients
  }

  /// Returns the sockets that an earlier larderd left with the service manager and that this one uses again, with their
  /// addresses. Closes the others, because clients would wait forever at an address that nothing serves.
  private func adopt(
    _ stored: [InheritedSocket], for configuration: ServerConfiguration
  ) -> [(address: Address, socket: InheritedSocket)] {
    let wanted = configuration.addresses + [configuration.metrics].compactMap(\.self)
    var adopted = configuration.kept
    for socket in stored {
      if let address = wanted.first(where: { ListeningSocket.isPreserved(socket, at: $0) }),
        !adopted.contains(where: { $0.address == address })
      {
        adopted.append((address, socket))
      } else {
        ListeningSocket.discard(socket)
        DescriptorStore.remove(socket.name)
        log.notice("closed a stored socket that is no longer used", ["name": socket.name])
      }
    }
    return adopted
  }

  /// Warns about sockets on which the access rules refuse every client, which is probably a mistake.
  private func warnAboutClosedListeners(_ server: Server) {
    for listener in server.closedListeners {
      log.warning(
        "a \(listener.address.isEncrypted ? "TLS" : "TCP") socket refuses all clients, because access has no rule for it",
        ["listener": "\(listener)"])
    }
  }

  /// Logs when certificates expire.
  /// - Parameter onlySoon: Whether to leave out those that don't expire soon.
  private static func report(_ credentials: TLSCredentials, to log: EventLog, onlySoon: Bool = false) {
    for expiry in credentials.expiries {
      let days = expiry.days(from: Int64(time(nil)))
      if days <= CertificateStatus.daysOfWarning {
        log.warning("\(expiry.description) expires in \(days) days; replace its file, then reload")
      } else if !onlySoon {
        log.info("\(expiry.description) is valid for \(days) more days")
      }
    }
  }

  /// Warns once a day about certificates that expire soon.
  private func startReminder(of credentials: TLSCredentials) -> any DispatchSourceTimer {
    let timer = DispatchSource.makeTimerSource(queue: .global())
    timer.schedule(deadline: .now() + .seconds(86_400), repeating: .seconds(86_400), leeway: .seconds(60))
    timer.setEventHandler { [log] in Self.report(credentials, to: log, onlySoon: true) }
    timer.activate()
    return timer
  }

  /// Notifies the service manager that the server is alive, as often as it requires.
  private func startWatchdog(_ server: Server) -> Watchdog? {
    ServiceManager.watchdogInterval.map { [log] interval in
      Watchdog(server, every: interval / 2) {
        ServiceManager.alive()
      } onSilent: { silent in
        log.error("no reply for half of the watchdog interval", ["from": silent.joined(separator: ", ")])
      }
    }
  }

  // MARK: Reloading

  /// Reads the configuration again and applies what can change without a restart. If anything is wrong, applies
  /// nothing.
  /// - Returns: The settings now in effect, and a remark for the service manager's status.
  private func reload(
    _ server: Server, _ credentials: TLSCredentials?, _ current: ResolvedSettings
  ) -> (settings: ResolvedSettings, remark: String?) {
    do {
      let (next, changed, pending) = try current.reloaded(loader.load())
      let configuration = next.settings.server
      let tokens = try TokenTable(file: next.settings.tokens)
      let newCertificates = try credentials?.prepareReload(next.settings.tls)
      try server.change(
        stores: configuration.stores, limits: configuration.limits, rules: configuration.accessRules,
        roles: configuration.accessRoles,
        certificates: newCertificates?.status ?? credentials?.status ?? CertificateStatus(), tokens: tokens)
      if let credentials, let newCertificates {
        credentials.use(newCertificates)
        log.notice("new connections use the new certificates")
        Self.report(credentials, to: log)
      }
      log.setLevel(next.settings.logLevel)
      log.notice("reloaded the configuration", ["changed": changed.joined(separator: ", ")])
      server.record(AuditEvent(.reloaded, object: changed.joined(separator: ", ")))
      if configuration.accessRules.isEmpty, !current.settings.server.accessRules.isEmpty {
        log.warning("every client that can connect now has all rights, because access no longer has any rules")
      }
      warnAboutClosedListeners(server)
      if pending.isEmpty { return (next, nil) }
      log.warning("some changes require a restart", ["keys": pending.joined(separator: ", ")])
      return (next, "a restart is needed for \(pending.joined(separator: ", "))")
    } catch {
      let problems = (error as? SettingsError)?.problems ?? ["\(error)"]
      for problem in problems { log.error("the configuration was not reloaded: \(problem)") }
      server.record(AuditEvent(.reloaded, reason: problems.joined(separator: "; ")))
      return (current, "the configuration was not reloaded: \(problems[0])")
    }
  }
}

extension EventLog {
  /// Logs what happens to stores that servers share.
  fileprivate func report(_ event: SharedStoreEvent) {
    switch event {
    case .opened(let name, let opening):
      notice(
        "serves a replicated store",
        [
          "store": "\(name)", "entries": "\(opening.entries)", "revision": "\(opening.revision)",
          "milliseconds": "\(opening.milliseconds)",
        ])
    case .lost(let name): warning("another server has taken over a replicated store", ["store": "\(name)"])
    case .stopped(let name):
      error(
        "stopped a store of this server, because a replicated store has its name; its files are as they were, and its"
          + " entries are lost if it was in memory",
        ["store": "\(name)"])
    case .failure(let name?, let reason?): warning("does not serve a replicated store: \(reason)", ["store": "\(name)"])
    case .failure(nil, let reason?): error("can't monitor replicated stores: \(reason)")
    case .failure(nil, nil): notice("monitors replicated stores again")
    case .failure(_?, nil): break
    }
  }

  /// Logs an event of the access audit: which client was refused what.
  fileprivate func report(_ event: RefusalLog.Event) {
    switch event {
    case .refused(let refusal):
      var (process, user) = ("-", "-")
      if case .process(let id, let owner) = refusal.client.peer { (process, user) = ("\(id)", "\(owner)") }
      warning(
        "refused a client" + (refusal.reason.map { ": \($0)" } ?? ""),
        [
          "client": refusal.clientName, "action": refusal.action, "listener": "\(refusal.client.listener)",
          "pid": process, "uid": user,
        ])
    case .suppressed(let count, _): warning("did not log further refusals", ["count": "\(count)"])
    }
  }
}
