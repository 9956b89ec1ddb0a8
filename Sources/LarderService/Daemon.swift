import Basics
import Dispatch
import Glibc
import LarderServer
import Platform
import Storage
import Systemd

/// A server's life as a service, from the opening of its stores to the answer to the last request. It tells the service manager and the log
/// of each turn.
package struct Daemon {
  /// What sockets are passed for.
  private enum SocketUse {
    case clients, metrics
    /// One that an earlier larderd opened for an address of the settings.
    case listen
  }

  private let source: SettingsSource
  private let log: EventLog
  private let signals = SignalInbox()

  package init(_ source: SettingsSource, _ log: EventLog) {
    self.source = source
    self.log = log
  }

  /// Serves until the process is asked to end (SIGTERM, SIGINT). Another such signal then ends it at once.
  /// - Parameter sockets: those that the service manager has passed. Without them and without addresses, the usual address is served.
  /// - Throws: whatever keeps it from starting.
  package func run(_ read: ReadSettings, sockets: [InheritedSocket]) throws {
    signal(SIGPIPE, SIG_IGN)
    raiseDescriptorLimit()
    var read = read
    let server = try start(read.settings, sockets)
    let status = "serving on \(server.addresses.map(\.description).joined(separator: ", "))"
    let watchdog = watch(server)
    ServiceManager.ready(status)
    while signals.next() == SIGHUP {
      ServiceManager.reloading()
      let remark = reload(server, &read)
      ServiceManager.ready(remark.map { "\(status); \($0)" } ?? status)
    }
    signals.endAtOnce(true)
    ServiceManager.stopping("answering what has come")
    log.notice("stopping")
    watchdog?.stop()
    let stopped = DispatchSemaphore(value: 0)
    server.stop { stopped.signal() }
    stopped.wait()
    log.notice("stopped")
  }

  private func start(_ settings: Settings, _ sockets: [InheritedSocket]) throws -> Server {
    log.setLevel(settings.logLevel)
    var configuration = settings.server
    let passed = Dictionary(grouping: sockets, by: Self.use(of:))
    configuration.sockets = passed[.clients] ?? []
    configuration.metricsSockets = passed[.metrics] ?? []
    if configuration.addresses.isEmpty, configuration.sockets.isEmpty { configuration.addresses = [.default] }
    takeUp(passed[.listen] ?? [], &configuration)
    let notices = OpeningNotices()
    configuration.tellProgress = { notices.tell($0) }
    configuration.tellOpening = { [log] name, opening in
      log.info(
        "opened a store",
        [
          "store": "\(name)", "entries": "\(opening.entries)", "revision": "\(opening.revision)",
          "milliseconds": "\(opening.milliseconds)",
        ])
      for remark in opening.remarks { log.warning(remark, ["store": "\(name)"]) }
    }
    // A reload that has come meanwhile has waited; an end would have come at once. From here on there may be clients to answer.
    configuration.willServe = { [signals] in signals.endAtOnce(false) }
    configuration.tellRefusal = { [log] event in log.tell(event) }
    let server = try Server(configuration)
    for listener in server.listeners {
      let name = listener.name.isEmpty ? "-" : listener.name
      log.notice("listening", ["address": "\(listener.address)", "name": name, "version": softwareVersion])
    }
    for address in server.metricsAddresses { log.notice("serving metrics", ["address": "\(address)"]) }
    tellOfClosed(server)
    return server
  }

  /// By the names of sockets; whatever they are called otherwise, they are for clients.
  private static func use(of socket: InheritedSocket) -> SocketUse {
    if socket.name == "metrics" { return .metrics }
    return socket.name.hasPrefix(ListeningSocket.keptPrefix) ? .listen : .clients
  }

  /// Goes on with the sockets that an earlier larderd opened and gave into the service manager's keeping.
  private func takeUp(_ kept: [InheritedSocket], _ configuration: inout ServerConfiguration) {
    if DescriptorStore.isEnabled { configuration.keep = DescriptorStore.put }
    let wanted = configuration.addresses + [configuration.metrics].compactMap(\.self)
    for socket in kept {
      if let address = wanted.first(where: { ListeningSocket.isKept(socket, at: $0) }),
        !configuration.kept.contains(where: { $0.address == address })
      {
        configuration.kept.append((address, socket))
      } else {
        // Clients would wait for ever at an address that nobody serves any more.
        ListeningSocket.giveUp(socket)
        DescriptorStore.remove(socket.name)
        log.notice("gave up a socket that was kept", ["name": socket.name])
      }
    }
  }

  /// Tells of sockets on which everybody is refused, which hardly anybody means.
  private func tellOfClosed(_ server: Server) {
    for listener in server.closedListeners {
      log.warning("nobody may use a TCP socket, for access has no rule for tcp", ["listener": "\(listener)"])
    }
  }

  /// Reads the configuration anew and puts in force what can be: all of it or, if anything is wrong, nothing.
  /// - Returns: what the service manager should show of it.
  private func reload(_ server: Server, _ read: inout ReadSettings) -> String? {
    do {
      let (next, changed, waiting) = try read.reloaded(source.read())
      let wanted = next.settings.server
      try server.change(stores: wanted.stores, limits: wanted.limits, rules: wanted.accessRules)
      log.setLevel(next.settings.logLevel)
      let hasOpened = wanted.accessRules.isEmpty && !read.settings.server.accessRules.isEmpty
      read = next
      log.notice("read the configuration anew", ["changed": changed.joined(separator: ", ")])
      if hasOpened { log.warning("whoever can connect may do everything now, for access has no rules any more") }
      tellOfClosed(server)
      if waiting.isEmpty { return nil }
      log.warning("a restart is needed for some changes", ["keys": waiting.joined(separator: ", ")])
      return "a restart is needed for \(waiting.joined(separator: ", "))"
    } catch {
      let problems = (error as? SettingsError)?.problems ?? ["\(error)"]
      for problem in problems { log.error("the configuration was not reloaded: \(problem)") }
      return "the configuration was not reloaded: \(problems[0])"
    }
  }

  /// Lets the service manager know that the server lives, as often as it wants to.
  private func watch(_ server: Server) -> Watchdog? {
    ServiceManager.watchdogInterval.map { [log] interval in
      Watchdog(server, every: interval / 2) {
        ServiceManager.alive()
      } isSilent: { silent in
        log.error("no answer for half of the watchdog's time", ["from": silent.joined(separator: ", ")])
      }
    }
  }
}
