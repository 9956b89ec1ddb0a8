import Wire

/// A connection of the server, and how much it asks for.
public struct ConnectionDescription: Hashable, Sendable {
  /// Which of all connections that the server ever had.
  public let number: UInt64
  /// How long it has been open.
  public let age: Duration
  public let requests: UInt64
  /// As it was in the last second, about.
  public let requestsPerSecond: UInt64
  public let receivedBytes: UInt64
  public let sentBytes: UInt64
  /// What waits until the client reads it.
  public let waitingBytes: UInt64
  /// The process that connected to a Unix socket, and its user, by their numbers; nil for others.
  public let process: UInt32?
  public let user: UInt32?
  /// What that process is called; nil when it has ended.
  public let command: String?
  /// Where another machine, or the loopback, connected from; nil on a Unix socket.
  public let address: String?
  /// What the client calls itself. Not to be trusted.
  public let client: String

  init(_ connection: BusyConnection) {
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
