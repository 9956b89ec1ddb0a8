import LarderServer
import Systemd

extension EventLog {
  /// The audit's events: who asked for what and may not do it.
  func tell(_ event: RefusalLog.Event) {
    switch event {
    case .refused(let refusal):
      func number(_ value: (some BinaryInteger)?) -> String { value.map { "\($0)" } ?? "-" }
      warning(
        "refused a client",
        [
          "client": refusal.client, "action": refusal.action, "listener": "\(refusal.listener)",
          "pid": number(refusal.peer?.process), "uid": number(refusal.peer?.user), "gid": number(refusal.peer?.group),
        ])
    case .leftOut(let count): warning("left refusals out of the log", ["count": "\(count)"])
    }
  }
}
