/// The latest wakeups that took long: when, how long, and what was requested. It has no keys and no values. Used under a lock.
struct SlowLog {
  /// The number of entries that are kept.
  static let capacity = 128

  struct Entry {
    /// When the wakeup ended, in milliseconds of the server's clock.
    let ended: UInt64
    let nanoseconds: UInt64
    let requests: UInt32
    let receivedBytes: UInt64
    /// A bit for each operation that was requested.
    let operations: UInt32
    /// The store that was locked last; empty if none was.
    let store: String
  }

  private var entries: [Entry] = []
  private var next = 0

  mutating func append(_ entry: Entry) {
    if entries.count < Self.capacity { entries.append(entry) } else { entries[next] = entry }
    next = (next + 1) % Self.capacity
  }

  var newestFirst: [Entry] {
    (entries[..<min(next, entries.count)].reversed() + entries[min(next, entries.count)...].reversed())
  }
}
