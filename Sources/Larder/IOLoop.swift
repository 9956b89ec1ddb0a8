import Dispatch
import Platform
import Synchronization

/// The thread that reads for a client: it waits until a connection has something, or a deadline is due.
///
/// The thread is that of a serial queue, which it holds from the first call until no connection is left. Whoever gives it something
/// to do that is due before it would wake up by itself calls `wake`.
final class IOLoop: Sendable {
  let poll: Poll
  private let wakeup: Wakeup
  private let queue = DispatchQueue(label: "larder.client")
  /// Until when the loop sleeps, in milliseconds; 0 while it is awake and will look at everything before it sleeps again.
  private let sleepsUntil = Atomic<UInt64>(0)
  private let shared = Lock(Shared())

  private struct Shared {
    /// Emptied by `close`, which so undoes the circle of references between the loop and its connections.
    var connections: [Connection] = []
    var isRunning = false
  }

  init() throws(SystemError) {
    poll = try Poll()
    wakeup = try Wakeup()
    try poll.add(wakeup.descriptor.number, .reading, token: .max)
  }

  func serve(_ connections: [Connection]) {
    shared.withLock { $0.connections = connections }
  }

  /// Has the loop look at every connection.
  func wake() {
    wakeup.signal()
  }

  /// Has the loop look at every connection, unless it does so by `time` anyway.
  func wake(by time: UInt64) {
    if sleepsUntil.load(ordering: .sequentiallyConsistent) > time { wakeup.signal() }
  }

  /// Starts the loop if it does not run, and has it look at every connection.
  func start() {
    let mustStart = shared.withLock { shared in
      defer { shared.isRunning = true }
      return !shared.isRunning
    }
    if mustStart { queue.async { self.run() } } else { wake() }
  }

  /// Ends the connections, and with them the loop.
  func close() {
    let connections = shared.withLock { shared in
      defer { shared.connections = [] }
      return shared.connections
    }
    // What the connections hold is let go of on the loop's queue, where nothing reads meanwhile.
    wake()
    queue.async { for connection in connections { connection.end() } }
  }

  private func run() {
    var events = Poll.Events(capacity: 64)
    while let connections = connectionsToServe() {
      sleepsUntil.store(.max, ordering: .sequentiallyConsistent)
      var due = UInt64.max
      for connection in connections { due = min(due, connection.nextDue) }
      sleepsUntil.store(due, ordering: .sequentiallyConsistent)
      let count = poll.wait(timeoutMilliseconds: Self.timeout(until: due), into: &events)
      sleepsUntil.store(0, ordering: .sequentiallyConsistent)

      var wasWoken = count == 0
      for index in 0..<count {
        let event = events[index]
        if event.token == .max {
          wakeup.clear()
          wasWoken = true
        } else {
          let number = Int(event.token & 0xFF)
          if number < connections.count { connections[number].handle(event, incarnation: event.token >> 8) }
        }
      }
      let now = monotonicMilliseconds()
      if wasWoken || now >= due {
        for connection in connections { connection.tend(now: now) }
      }
    }
  }

  /// The connections, or nil when none of them needs the loop, which then ends.
  private func connectionsToServe() -> [Connection]? {
    shared.withLock { shared in
      if shared.connections.contains(where: \.isActive) { return shared.connections }
      shared.isRunning = false
      return nil
    }
  }

  private static func timeout(until due: UInt64) -> Int32 {
    if due == .max { return -1 }
    let now = monotonicMilliseconds()
    // The clock counts whole milliseconds, so that a wait for one more is never too short.
    return due <= now ? 0 : Int32(clamping: due - now)
  }
}
