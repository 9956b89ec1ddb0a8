/// The latest wake-ups of workers that took long: when, for how long, and what was asked for. No keys, and no values. Used under a lock.
struct SlowLog {
  /// How many are kept.
  static let capacity = 128

  struct Entry {
    /// When it ended, in milliseconds of the server's clock.
    let ended: UInt64
    let nanoseconds: UInt64
    /// All requests that the wake-up brought.
    let requests: UInt32
    let receivedBytes: UInt64
    /// A bit for each operation among them.
    let operations: UInt32
    /// The store that was worked on last; empty when none was.
    let store: String
  }

  private var entries: [Entry] = []
  private var next = 0

  mutating func note(_ entry: Entry) {
    if entries.count < Self.capacity { entries.append(entry) } else { entries[next] = entry }
    next = (next + 1) % Self.capacity
  }

  /// The latest first.
  var latest: [Entry] {
    (entries[..<min(next, entries.count)].reversed() + entries[min(next, entries.count)...].reversed())
  }
}
