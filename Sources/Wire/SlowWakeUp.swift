/// A wake-up of a worker that took long, in the reply to a slow-log request: `Protocol/wire.md` §6.1.
public struct SlowWakeUp: Equatable, Sendable {
  public let millisecondsAgo: UInt64
  public let nanoseconds: UInt64
  public let receivedBytes: UInt64
  public let requests: UInt32
  /// A bit for each operation's number.
  public let operations: UInt32
  public let store: String

  public init(
    millisecondsAgo: UInt64, nanoseconds: UInt64, receivedBytes: UInt64, requests: UInt32, operations: UInt32,
    store: String
  ) {
    self.millisecondsAgo = millisecondsAgo
    self.nanoseconds = nanoseconds
    self.receivedBytes = receivedBytes
    self.requests = requests
    self.operations = operations
    self.store = store
  }

  /// The entries of a reply, or nil when it is malformed.
  public static func decode(_ body: RawSpan) -> [SlowWakeUp]? {
    var entries: [SlowWakeUp] = []
    var place = 0
    while place < body.byteCount {
      guard let ago = body.integer(at: place, as: UInt64.self),
        let nanoseconds = body.integer(at: place + 8, as: UInt64.self),
        let receivedBytes = body.integer(at: place + 16, as: UInt64.self),
        let requests = body.integer(at: place + 24, as: UInt32.self),
        let operations = body.integer(at: place + 28, as: UInt32.self), let store = body.shortText(at: place + 32)
      else { return nil }
      entries.append(
        SlowWakeUp(
          millisecondsAgo: ago, nanoseconds: nanoseconds, receivedBytes: receivedBytes, requests: requests,
          operations: operations, store: store.text))
      place = store.end
    }
    return entries
  }
}

extension ByteBuffer {
  public mutating func append(_ entry: SlowWakeUp) {
    append(entry.millisecondsAgo)
    append(entry.nanoseconds)
    append(entry.receivedBytes)
    append(entry.requests)
    append(entry.operations)
    appendShort(entry.store)
  }
}
