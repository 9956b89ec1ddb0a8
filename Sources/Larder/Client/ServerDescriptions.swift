import Wire

/// A store in the server's list.
public struct StoreDescription: Hashable, Sendable {
  public let name: String
  /// The engine and its options, such as `memory` or `log?durability=always`. `createStore` makes another such store
  /// from it. `damaged` if the store is damaged.
  public let specification: String
  /// The number of entries.
  public let entries: UInt64

  /// A Boolean value that indicates whether the store's files are damaged, so that the server does not serve it.
  public var isDamaged: Bool { specification == ListedStore.damagedSpecification }

  /// The name of the engine, such as `log`.
  public var engine: String { String(specification.prefix { $0 != "?" }) }

  /// The durability of a write that the server has answered: `always`, `none`, or `interval:` and a time; nil for a
  /// store that does not survive the server.
  public var durability: String? { option("durability") }

  /// The limit of the memory that the store's entries take, such as `256MiB`; nil if there is none.
  public var limit: String? { option("limit") }

  private func option(_ name: String) -> String? {
    guard let range = specification.firstRange(of: "?\(name)=") else { return nil }
    return String(specification[range.upperBound...])
  }
}

/// A period in which the server was slow. Requests that arrive together are processed together, and timed together.
public struct SlowLogEntry: Hashable, Sendable {
  /// How long before the call the period ended.
  public let ago: Duration
  /// How long the period lasted.
  public let took: Duration
  /// The number of requests that were processed.
  public let requests: Int
  /// The size of those requests, in bytes.
  public let receivedBytes: UInt64
  /// The requested operations, by their names in the protocol.
  public let operations: [String]
  /// The store that was used last; nil if there was none.
  public let store: String?

  init(_ entry: SlowLogRecord) {
    ago = .milliseconds(Int64(clamping: entry.ageMilliseconds))
    took = .nanoseconds(Int64(clamping: entry.nanoseconds))
    requests = Int(entry.requests)
    receivedBytes = entry.receivedBytes
    operations = entry.operationNames
    store = entry.store.isEmpty ? nil : entry.store
  }
}

/// A connection of the server, and its traffic.
public struct ConnectionDescription: Hashable, Sendable {
  /// The number of the connection, counted since the server's start.
  public let number: UInt64
  /// How long the connection has been open.
  public let age: Duration
  public let requests: UInt64
  /// The requests per second, over about the last second.
  public let requestsPerSecond: UInt64
  public let receivedBytes: UInt64
  public let sentBytes: UInt64
  /// The bytes of replies that the client has not read yet.
  public let waitingBytes: UInt64
  /// The id of the process that connected to a Unix socket; nil for other connections.
  public let process: UInt32?
  /// The id of that process's user; nil for other connections.
  public let user: UInt32?
  /// The name of that process; nil if it has ended.
  public let command: String?
  /// The address of a TCP client; nil for a Unix socket.
  public let address: String?
  /// The name that the client gave itself. Don't trust it.
  public let client: String

  init(_ connection: ConnectionStatistics) {
    number = connection.number
    age = .milliseconds(Int64(clamping: connection.openMilliseconds))
    requests = connection.requests
    requestsPerSecond = connection.requestsPerSecond
    receivedBytes = connection.receivedBytes
    sentBytes = connection.sentBytes
    waitingBytes = connection.waitingBytes
    process = connection.process == 0 ? nil : connection.process
    user = connection.user == .max ? nil : connection.user
    command = connection.command.isEmpty ? nil : connection.command
    address = connection.address.isEmpty ? nil : connection.address
    client = connection.client
  }
}
