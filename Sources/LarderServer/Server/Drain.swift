/// How a worker ends its connections because the server stops.
struct Drain {
  /// When open reply streams are ended, in milliseconds; nil unless the server stops.
  private(set) var deadline: UInt64?
  /// Whether every worker has stopped executing requests, so that a watch that is at its end has reported everything.
  private var isEverywhere = false

  /// How often watches are checked for their end, in milliseconds.
  static let sweepInterval: UInt64 = 5

  var isRunning: Bool { deadline != nil }

  mutating func begin(until deadline: UInt64) { self.deadline = deadline }

  mutating func everyWorkerDrains() { isEverywhere = true }

  /// Whether a connection has nothing left to report: it has no streams, or only watches that have reported every change
  /// there will be.
  func permitsEnd(of connection: borrowing Connection) -> Bool {
    isEverywhere ? connection.streams.allSatisfy { $0.isAtEnd } : connection.streams.isEmpty
  }
}
