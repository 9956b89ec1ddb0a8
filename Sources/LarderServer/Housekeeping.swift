import Dispatch
import Platform
import Storage

/// Gives back the memory of expired entries that nobody asks for, and of changes that nobody watches: once a second, a bounded number under
/// each hold of a lock.
///
/// Safe because the timer does not change, and Dispatch's sources may be used from any thread.
final class Housekeeping: @unchecked Sendable {
  private let timer: any DispatchSourceTimer

  init(_ state: ServerState) {
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "larder.housekeeping"))
    timer.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(200))
    timer.setEventHandler {
      state.noteSecond()
      for store in state.stores.list() {
        let now = monotonicMilliseconds()
        store.access { $0.forgetFeed(now: now) }
        while store.access({ map in
          map.expire(now: now, limit: 1_000)
          return map.isExpiryDue(now: now)
        }) {}
      }
    }
    timer.activate()
  }

  func stop() {
    timer.cancel()
  }
}
