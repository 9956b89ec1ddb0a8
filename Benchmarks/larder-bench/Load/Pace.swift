/// When the requests of one thread are planned, at a constant rate: they go to the connections in turn, so a connection's nth request has
/// its time without anything being kept of it.
struct Pace: Sendable {
  /// Nanoseconds from one request of the thread to the next.
  let interval: Double
  let connections: Int
  var start: UInt64 = 0

  /// - Parameter rate: requests a second of this thread.
  init(rate: Double, connections: Int) {
    interval = 1e9 / rate
    self.connections = connections
  }

  @inline(__always)
  func time(of request: Int, on connection: Int) -> UInt64 {
    start &+ UInt64(Double(request &* connections &+ connection) * interval)
  }

  /// How many requests of the thread are planned until `now`.
  @inline(__always)
  func planned(until now: UInt64) -> Int {
    now < start ? 0 : Int(Double(now &- start) / interval) &+ 1
  }
}
