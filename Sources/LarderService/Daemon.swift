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
    let credentials = try settings.settings.tls.certificates.isEmpty ? nil : TLSCredentials(settings.settings.tls)
    let audit = try AuditWriter(settings.settings.audit, log)
    let server = try start(settings.settings, sockets, credentials, audit)
    let status = Self.status(server)
    let watchdog = startWatchdog(server)
    let reminder = credentials.map(startReminder)
    ServiceManager.ready(status)
    let reloader = Reloader(of: server, settings, loader, credentials, audit, log) { remark in
      ServiceManager.ready(remark.map { "\(status); \($0)" } ?? status)
    }
    while signals.next() == SIGHUP { reloader.reload() }
    signals.setTerminatesAtOnce(true)
    reloader.stop()
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
      log.report(credentials)
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
      log.notice("listening", ["address": listener.location, "name": name, "version": softwareVersion])
    }
    for address in server.metricsAddresses { log.notice("serving metrics", ["address": "\(address)"]) }
    log.report(listenersOf: server)
    // Others may have stores that this server doesn't have yet.
    for database in configuration.databases where configuration.sharedStores == nil && !server.hasStore(database.store)
    {
      log.warning(
        "database \(database.number) has no store, because there is none of this name", ["store": "\(database.store)"])
    }
    if !server.damagedStores.isEmpty {
      log.error(
        "serving without damaged stores; clients get storeDamaged",
        ["stores": server.damagedStores.map(\.text).joined(separator: ", ")])
    }
    return server
  }

  /// The status that the service manager shows.
  private static func status(_ server: Server) -> String {
    let status = "serving on \(server.listeners.map(\.location).joined(separator: ", "))"
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

  /// Warns once a day about certificates that expire soon.
  private func startReminder(of credentials: TLSCredentials) -> any DispatchSourceTimer {
    let timer = DispatchSource.makeTimerSource(queue: .global())
    timer.schedule(deadline: .now() + .seconds(86_400), repeating: .seconds(86_400), leeway: .seconds(60))
    timer.setEventHandler { [log] in log.report(credentials, onlySoon: true) }
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
}
