import Wire

// The fields of the records that some replies list. The names are those of the vectors' files.

struct FigureFields: Decodable, Equatable, Sendable {
  private let name: String
  private let value: UInt64

  init(_ figure: Figure) { (name, value) = (figure.name, figure.value) }

  var figure: Figure { Figure(name, value) }
}

struct StoreFields: Decodable, Equatable, Sendable {
  private let name: String
  private let specification: String
  private let entries: UInt64

  init(_ store: ListedStore) { (name, specification, entries) = (store.name, store.specification, store.entries) }

  var store: ListedStore { ListedStore(name: name, specification: specification, entries: entries) }
}

struct SlowFields: Decodable, Equatable, Sendable {
  private let age: UInt64
  private let nanoseconds: UInt64
  private let receivedBytes: UInt64
  private let requests: UInt32
  private let operations: UInt32
  private let name: String

  private enum CodingKeys: String, CodingKey {
    case age = "millisecondsAgo"
    case nanoseconds, receivedBytes, requests, operations, name
  }

  init(_ entry: SlowLogRecord) {
    (age, nanoseconds, receivedBytes) = (entry.ageMilliseconds, entry.nanoseconds, entry.receivedBytes)
    (requests, operations, name) = (entry.requests, entry.operations, entry.store)
  }

  var entry: SlowLogRecord {
    SlowLogRecord(
      ageMilliseconds: age, nanoseconds: nanoseconds, receivedBytes: receivedBytes, requests: requests,
      operations: operations, store: name)
  }
}

struct ConnectionFields: Decodable, Equatable, Sendable {
  private let number: UInt64
  private let openMilliseconds: UInt64
  private let requests: UInt64
  private let requestsPerSecond: UInt64
  private let receivedBytes: UInt64
  private let sentBytes: UInt64
  private let waitingBytes: UInt64
  private let process: UInt32
  private let user: UInt32
  private let address: String
  private let command: String
  private let client: String

  init(_ connection: ConnectionStatistics) {
    (number, openMilliseconds) = (connection.number, connection.openMilliseconds)
    (requests, requestsPerSecond) = (connection.requests, connection.requestsPerSecond)
    (receivedBytes, sentBytes) = (connection.receivedBytes, connection.sentBytes)
    (waitingBytes, process, user) = (connection.waitingBytes, connection.process, connection.user)
    (address, command, client) = (connection.address, connection.command, connection.client)
  }

  var connection: ConnectionStatistics {
    ConnectionStatistics(
      number: number, openMilliseconds: openMilliseconds, requests: requests, requestsPerSecond: requestsPerSecond,
      receivedBytes: receivedBytes, sentBytes: sentBytes, waitingBytes: waitingBytes, process: process, user: user,
      address: address, command: command, client: client)
  }
}
