import Glibc
import LarderServer
import Systemd

extension EventLog {
  /// Logs what happens to stores that servers share.
  func report(_ event: SharedStoreEvent) {
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
  func report(_ event: RefusalLog.Event) {
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

  /// Warns about sockets whose clients have other rights than an administrator may believe: those on which the access
  /// rules refuse every client, and those on which every user of the machine may do everything.
  func report(listenersOf server: Server) {
    for listener in server.closedListeners {
      warning(
        "a \(listener.address.isEncrypted ? "TLS" : "TCP") socket refuses all clients, because access has no rule for it",
        ["listener": "\(listener)"])
    }
    for listener in server.unprotectedListeners {
      warning(
        "every user of this machine can read and change everything here, because access has no rules",
        ["listener": "\(listener)"])
    }
  }

  /// Logs when certificates expire.
  /// - Parameter onlySoon: Whether to leave out those that don't expire soon.
  func report(_ credentials: TLSCredentials, onlySoon: Bool = false) {
    for expiry in credentials.expiries {
      let days = expiry.days(from: Int64(time(nil)))
      if days <= CertificateStatus.daysOfWarning {
        warning("\(expiry.description) expires in \(days) days; replace its file, then reload")
      } else if !onlySoon {
        info("\(expiry.description) is valid for \(days) more days")
      }
    }
  }
}
