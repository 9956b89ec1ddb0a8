/// A connection in the reply to a connections request: `Protocol/wire.md` §6.1.
public struct BusyConnection: Equatable, Sendable {
  public let number: UInt64
  public let openMilliseconds: UInt64
  public let requests: UInt64
  public let requestsPerSecond: UInt64
  public let receivedBytes: UInt64
  public let sentBytes: UInt64
  public let waitingBytes: UInt64
  /// 0 for none.
  public let process: UInt32
  /// `UInt32.max` for none.
  public let user: UInt32
  public let address: String
  public let command: String
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

  private init?(_ body: RawSpan, at place: inout Int) {
    var numbers: [UInt64] = []
    for index in 0..<7 {
      guard let number = body.integer(at: place + 8 * index, as: UInt64.self) else { return nil }
      numbers.append(number)
    }
    guard let process = body.integer(at: place + 56, as: UInt32.self),
      let user = body.integer(at: place + 60, as: UInt32.self), let address = body.shortText(at: place + 64),
      let command = body.shortText(at: address.end), let client = body.shortText(at: command.end)
    else { return nil }
    self.init(
      number: numbers[0], openMilliseconds: numbers[1], requests: numbers[2], requestsPerSecond: numbers[3],
      receivedBytes: numbers[4], sentBytes: numbers[5], waitingBytes: numbers[6], process: process, user: user,
      address: address.text, command: command.text, client: client.text)
    place = client.end
  }

  /// The connections of a reply, or nil when it is malformed.
  public static func decode(_ body: RawSpan) -> [BusyConnection]? {
    var connections: [BusyConnection] = []
    var place = 0
    while place < body.byteCount {
      guard let connection = BusyConnection(body, at: &place) else { return nil }
      connections.append(connection)
    }
    return connections
  }
}

extension ByteBuffer {
  public mutating func append(_ connection: BusyConnection) {
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
