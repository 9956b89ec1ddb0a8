import Wire

/// A time at which the server took long, of those that it remembers. Requests that come together are served together, and timed together.
public struct SlowLogEntry: Hashable, Sendable {
  /// How long before the call it ended.
  public let ago: Duration
  public let took: Duration
  /// How many requests were served meanwhile, and their bytes.
  public let requests: Int
  public let receivedBytes: UInt64
  /// What was asked for, by the protocol's names; one name when there was one request.
  public let operations: [String]
  /// The store that was worked on last; nil when there was none.
  public let store: String?

  init(_ entry: SlowWakeUp) {
    ago = .milliseconds(Int64(clamping: entry.millisecondsAgo))
    took = .nanoseconds(Int64(clamping: entry.nanoseconds))
    requests = Int(entry.requests)
    receivedBytes = entry.receivedBytes
    operations = (UInt8(0)..<32).filter { entry.operations >> UInt32($0) & 1 == 1 }
      .map { Wire.Operation(rawValue: $0)?.name ?? "other" }
    store = entry.store.isEmpty ? nil : entry.store
  }
}
