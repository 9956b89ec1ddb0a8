import Dispatch
import Platform
import Synchronization

/// The event loop of a client: one thread that waits for the sockets of all connections and for their deadlines.
///
/// The thread belongs to a serial queue. It runs from the first call until no connection needs it. Only this thread
/// opens and closes connections. A thread that gives it work that is due before it would wake calls `wake`.
final class ClientEventLoop: Sendable {
  private let poll: Poll
  private let wakeup: Wakeup
  private let queue = DispatchQueue(label: "larder.client")
  /// Until when the loop sleeps, in milliseconds; 0 while it is awake and will check everything before it sleeps.
  private let sleepsUntil = Atomic<UInt64>(0)
  private let shared = Lock(Shared())

  private struct Shared {
    /// `close` empties this, which breaks the reference cycle of the loop and its connections.
    var connections: [ServerConnection] = []
    var isRunning = false
  }

  init() throws(SystemError) {
    poll = try Poll()
    wakeup = try Wakeup()
    try poll.add(wakeup.descriptor.number, .reading, token: .max)
  }

  /// Sets the connections to serve, at most 256, whose numbers are their indices.
  func serve(_ connections: [ServerConnection]) {
    shared.withLock { $0.connections = connections }
  }

  /// Makes the loop check every connection.
  func wake() {
    wakeup.signal()
  }

  /// Makes the loop check every connection, unless it will by `time` anyway.
  func wake(by time: UInt64) {
    if sleepsUntil.load(ordering: .sequentiallyConsistent) > time { wakeup.signal() }
  }

  /// Starts the loop, or makes it check every connection if it is running.
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
    // The connections release their resources on the loop's queue, while nothing reads.
    wake()
    queue.async { for connection in connections { connection.terminate() } }
  }

  // MARK: Channels

  /// Adds the channel of a connection.
  func add(
    _ channel: SharedChannel, _ interest: Poll.Interest, connection: Int, incarnation: UInt64
  ) throws(SystemError) {
    try poll.add(channel.number, interest, token: Self.token(connection, incarnation))
  }

  func change(_ channel: SharedChannel, _ interest: Poll.Interest, connection: Int, incarnation: UInt64) {
    poll.change(channel.number, interest, token: Self.token(connection, incarnation))
  }

  func remove(_ channel: SharedChannel) {
    poll.remove(channel.number)
  }

  /// The token of a connection's events. Late events of an earlier channel carry an earlier incarnation.
  private static func token(_ connection: Int, _ incarnation: UInt64) -> UInt64 {
    incarnation << 8 | UInt64(connection)
  }

  // MARK: Running

  private func run() {
    var events = Poll.Events(capacity: 64)
    while let connections = connectionsToServe() {
      sleepsUntil.store(.max, ordering: .sequentiallyConsistent)
      var nextTimer = UInt64.max
      for connection in connections { nextTimer = min(nextTimer, connection.nextTimer) }
      sleepsUntil.store(nextTimer, ordering: .sequentiallyConsistent)
      let count = poll.wait(timeoutMilliseconds: Self.timeout(until: nextTimer), into: &events)
      sleepsUntil.store(0, ordering: .sequentiallyConsistent)

      var mustRunTimers = count == 0
      for index in 0..<count {
        let event = events[index]
        if event.token == .max {
          wakeup.clear()
          mustRunTimers = true
        } else {
          let number = Int(event.token & 0xFF)
          if number < connections.count { connections[number].handle(event, incarnation: event.token >> 8) }
        }
      }
      let now = monotonicMilliseconds()
      if mustRunTimers || now >= nextTimer {
        for connection in connections { connection.runTimers(now: now) }
      }
    }
  }

  /// The connections, or nil if none of them needs the loop, which then ends.
  private func connectionsToServe() -> [ServerConnection]? {
    shared.withLock { shared in
      if shared.connections.contains(where: \.needsEventLoop) { return shared.connections }
      shared.isRunning = false
      return nil
    }
  }

  private static func timeout(until time: UInt64) -> Int32 {
    if time == .max { return -1 }
    let now = monotonicMilliseconds()
    // The clock counts whole milliseconds, so that a wait for one more is never too short.
    return time <= now ? 0 : Int32(clamping: time - now)
  }
}
