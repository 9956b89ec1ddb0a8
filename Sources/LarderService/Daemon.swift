import Dispatch
import Glibc
import LarderServer
import Platform
import Storage
import Systemd

/// A server's life as a service, from the opening of its stores to the answer to the last request. It tells the service manager and the log
/// of each turn.
package struct Daemon {
  private let log: EventLog

  package init(_ log: EventLog) { self.log = log }

  /// Serves until the process is asked to end (SIGTERM, SIGINT). Another such signal then ends it at once.
  /// - Returns: whether it could be started.
  package func run(_ configuration: ServerConfiguration) -> Bool {
    signal(SIGPIPE, SIG_IGN)
    raiseDescriptorLimit()
    let server: Server
    do { server = try start(configuration) } catch {
      log.error("can't start: \(error)")
      ServiceManager.status("can't start: \(error)")
      return false
    }
    let signals = SignalInbox()
    for number in [SIGTERM, SIGINT] { signals.take(number) }
    let watchdog = watch(server)
    ServiceManager.ready("serving on \(server.addresses.map(\.description).joined(separator: ", "))")
    _ = signals.next()
    for number in [SIGTERM, SIGINT] { signals.letGo(number) }
    ServiceManager.stopping("answering what has come")
    log.notice("stopping")
    watchdog?.stop()
    let stopped = DispatchSemaphore(value: 0)
    server.stop { stopped.signal() }
    stopped.wait()
    log.notice("stopped")
    return true
  }

  private func start(_ configuration: ServerConfiguration) throws -> Server {
    var configuration = configuration
    let notices = OpeningNotices()
    configuration.tellProgress = notices.tell
    configuration.tellOpening = { [log] name, opening in
      log.info(
        "opened a store",
        [
          "store": "\(name)", "entries": "\(opening.entries)", "revision": "\(opening.revision)",
          "milliseconds": "\(opening.milliseconds)",
        ])
      for remark in opening.remarks { log.warning(remark, ["store": "\(name)"]) }
    }
    let server = try Server(configuration)
    // The sockets that were passed come first.
    for (index, address) in server.addresses.enumerated() {
      let name = index < configuration.sockets.count ? configuration.sockets[index].name : "-"
      log.notice("listening", ["address": "\(address)", "name": name, "version": softwareVersion])
    }
    return server
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
