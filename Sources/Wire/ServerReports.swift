/// A named number of a stats reply: `Protocol/wire.md` §6.1.
public struct Figure: Equatable, Sendable {
  public let name: String
  public let value: UInt64

  public init(_ name: String, _ value: UInt64) {
    self.name = name
    self.value = value
  }

  /// Decodes the figures of a stats reply, or returns nil if it is malformed.
  public static func decode(_ body: RawSpan) -> [Figure]? {
    var figures: [Figure] = []
    var offset = 0
    while offset < body.byteCount {
      guard let name = body.shortText(at: offset), let value = body.integer(at: name.end, as: UInt64.self) else {
        return nil
      }
      figures.append(Figure(name.text, value))
      offset = name.end + 8
    }
    return figures
  }
}

/// A batch of requests that a worker took long to process, in the reply to a slow-log request: `Protocol/wire.md` §6.1.
public struct SlowLogRecord: Equatable, Sendable {
  /// How long before the reply the batch ended.
  public let ageMilliseconds: UInt64
  /// How long the batch took.
  public let nanoseconds: UInt64
  public let receivedBytes: UInt64
  public let requests: UInt32
  /// The operations of the requests: bit n is set for the operation with the number n, and bit 0 for those above 31.
  public let operations: UInt32
  /// The name of the store that was used last; empty if there was none.
  public let store: String

  /// The names of the operations in the protocol; `other` stands for those that have no bit of their own.
  public var operationNames: [String] {
    (UInt8(0)..<32).filter { operations >> UInt32($0) & 1 == 1 }.map { Operation(rawValue: $0)?.name ?? "other" }
  }

  public init(
    ageMilliseconds: UInt64, nanoseconds: UInt64, receivedBytes: UInt64, requests: UInt32, operations: UInt32,
    store: String
  ) {
    self.ageMilliseconds = ageMilliseconds
    self.nanoseconds = nanoseconds
    self.receivedBytes = receivedBytes
    self.requests = requests
    self.operations = operations
    self.store = store
  }

  /// Decodes the entries of a slow-log reply, or returns nil if it is malformed.
  public static func decode(_ body: RawSpan) -> [SlowLogRecord]? {
    var entries: [SlowLogRecord] = []
    var offset = 0
    while offset < body.byteCount {
      guard let ago = body.integer(at: offset, as: UInt64.self),
        let nanoseconds = body.integer(at: offset + 8, as: UInt64.self),
        let receivedBytes = body.integer(at: offset + 16, as: UInt64.self),
        let requests = body.integer(at: offset + 24, as: UInt32.self),
        let operations = body.integer(at: offset + 28, as: UInt32.self), let store = body.shortText(at: offset + 32)
      else { return nil }
      entries.append(
        SlowLogRecord(
          ageMilliseconds: ago, nanoseconds: nanoseconds, receivedBytes: receivedBytes, requests: requests,
          operations: operations, store: store.text))
      offset = store.end
    }
    return entries
  }
}

/// A connection of the server, in the reply to a connections request: `Protocol/wire.md` §6.1.
public struct ConnectionStatistics: Equatable, Sendable {
  public let number: UInt64
  /// How long the connection has been open.
  public let openMilliseconds: UInt64
  public let requests: UInt64
  public let requestsPerSecond: UInt64
  public let receivedBytes: UInt64
  public let sentBytes: UInt64
  /// The bytes of replies that the client has not read yet.
  public let waitingBytes: UInt64
  /// The id of the client's process; 0 if it is not known.
  public let process: UInt32
  /// The id of the client's user; `UInt32.max` if it is not known.
  public let user: UInt32
  /// The client's TCP address; empty for a Unix socket.
  public let address: String
  /// The name of the client's process; empty if it is not known.
  public let command: String
  /// The name that the client gave itself.
  public let client: String

  public init(
    number: UInt64, openMilliseconds: UInt64, requests: UInt64, requestsPerSecond: UInt64, receivedBytes: UInt64,
    sentBytes: UInt64, waitingBytes: UInt64, process: UInt32, user: UInt32, address: String, command: String,
    client: String
  ) {
    self.number = number
    self.openMilliseconds = openMilliseconds
    self.requests = requests
    self.requestsPerSecond = requestsPerSecond
    self.receivedBytes = receivedBytes
    self.sentBytes = sentBytes
    self.waitingBytes = waitingBytes
    self.process = process
    self.user = user
    self.address = address
    self.command = command
    self.client = client
  }

  /// Decodes the connection at `offset`, and advances the offset past it.
  private init?(_ body: RawSpan, at offset: inout Int) {
    var numbers: [UInt64] = []
    for index in 0..<7 {
      guard let number = body.integer(at: offset + 8 * index, as: UInt64.self) else { return nil }
      numbers.append(number)
    }
    guard let process = body.integer(at: offset + 56, as: UInt32.self),
      let user = body.integer(at: offset + 60, as: UInt32.self), let address = body.shortText(at: offset + 64),
      let command = body.shortText(at: address.end), let client = body.shortText(at: command.end)
    else { return nil }
    self.init(
      number: numbers[0], openMilliseconds: numbers[1], requests: numbers[2], requestsPerSecond: numbers[3],
      receivedBytes: numbers[4], sentBytes: numbers[5], waitingBytes: numbers[6], process: process, user: user,
      address: address.text, command: command.text, client: client.text)
    offset = client.end
  }

  /// Decodes the connections of a connections reply, or returns nil if it is malformed.
  public static func decode(_ body: RawSpan) -> [ConnectionStatistics]? {
    var connections: [ConnectionStatistics] = []
    var offset = 0
    while offset < body.byteCount {
      guard let connection = ConnectionStatistics(body, at: &offset) else { return nil }
      connections.append(connection)
    }
    return connections
  }
}

extension ByteBuffer {
  public mutating func append(_ figure: Figure) {
    appendShort(figure.name)
    append(figure.value)
  }

  public mutating func append(_ entry: SlowLogRecord) {
    append(entry.ageMilliseconds)
    append(entry.nanoseconds)
    append(entry.receivedBytes)
    append(entry.requests)
    append(entry.operations)
    appendShort(entry.store)
  }

  public mutating func append(_ connection: ConnectionStatistics) {
    append(connection.number)
    append(connection.openMilliseconds)
    append(connection.requests)
    append(connection.requestsPerSecond)
    append(connection.receivedBytes)
    append(connection.sentBytes)
    append(connection.waitingBytes)
    append(connection.process)
    append(connection.user)
    appendShort(connection.address)
    appendShort(connection.command)
    appendShort(connection.client)
  }
}
