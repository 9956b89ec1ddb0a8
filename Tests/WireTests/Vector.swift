import Foundation
import Testing
import Wire

/// A golden vector: `Protocol/vectors/README.md`.
struct Vector: Decodable, Sendable, CustomTestStringConvertible {
  let name: String
  let hex: String
  let decodeOnly: Bool?
  let frame: Fields

  var bytes: [UInt8] { [UInt8](hex: hex) }
  var testDescription: String { name }

  static let requests = read("requests.json")
  static let replies = read("replies.json")

  private static func read(_ file: String) -> [Vector] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    do {
      return try JSONDecoder().decode(
        [Vector].self, from: Data(contentsOf: root.appending(path: "Protocol/vectors/\(file)")))
    } catch {
      fatalError("\(file): \(error)")
    }
  }
}

/// The fields of a vector's frame; nil if one does not apply. The names are those of the vectors' files.
struct Fields: Decodable, Equatable, Sendable {
  // Every frame.
  var operation: String?
  var to: String?
  var id: UInt32
  var store: UInt16?
  var outcome: UInt8?
  var more: Bool?
  var code: String?
  var message: String?
  // Hellos.
  var lowestVersion: UInt16?
  var highestVersion: UInt16?
  var version: UInt16?
  var features: UInt32?
  var credit: UInt32?
  var largestFrame: UInt32?
  var largestValue: UInt32?
  var largestKey: UInt16?
  var mostStores: UInt16?
  var mostRequests: UInt32?
  var mostKeys: UInt32?
  // Watches.
  var from: UInt64?
  var through: UInt64?
  var changes: [RecordFields]?
  // Stores.
  var name: String?
  var engine: String?
  var specification: String?
  var handle: UInt16?
  var figures: [FigureFields]?
  var slow: [SlowFields]?
  var most: UInt32?
  var connections: [ConnectionFields]?
  var stores: [StoreFields]?
  // Entries.
  var keyHex: String?
  var keysHex: [String]?
  var prefixHex: String?
  var cursorHex: String?
  var records: [RecordFields]?
  var ifRevision: UInt64?
  var reverse: Bool?
  var keysOnly: Bool?
  var limit: UInt32?
  var offset: UInt64?
  var revision: UInt64?
  var count: UInt64?

  init(id: UInt32) { self.id = id }
}

struct FigureFields: Decodable, Equatable, Sendable {
  var name: String
  var value: UInt64
}

struct StoreFields: Decodable, Equatable, Sendable {
  var name: String
  var specification: String
  var entries: UInt64
}

struct RecordFields: Decodable, Equatable, Sendable {
  var kind: String
  var keyHex: String?
  var valueHex: String?
  var elementsHex: [String]?
  var expireAfterMilliseconds: UInt64?
  var revision: UInt64?
  var ifAbsent: Bool?
  var ifRevision: UInt64?
}

extension [UInt8] {
  /// The bytes of a hexadecimal text.
  /// - Precondition: The text has an even number of hexadecimal digits.
  init(hex: String) {
    let digits = hex.utf8.map { UInt8(String(UnicodeScalar($0)), radix: 16)! }
    self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  var hex: String {
    let digits = [UInt8]("0123456789abcdef".utf8)
    return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
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

/// The decoders of plain arrays, because a span can't be an argument inside `#expect`.
extension [UInt8] {
  func scanned(at offset: Int = 0, maxLength: Int) -> FrameScan {
    unsafe FrameScan(span.bytes, at: offset, maxLength: maxLength)
  }
  func write(at offset: Int = 0) -> WriteRecord? { unsafe WriteRecord(span.bytes, at: offset) }
  func entry(at offset: Int = 0) -> EntryRecord? { unsafe EntryRecord(span.bytes, at: offset) }
  func scanRequest(of operation: Wire.Operation) -> ScanRequest? { unsafe ScanRequest(span.bytes, of: operation) }
  var isKey: Bool { unsafe Key.isValid(span.bytes) }
  var isListValue: Bool { unsafe ListValue.isValid(span.bytes) }
  var elements: [[UInt8]]? { unsafe ListValue.decode(span.bytes) }

  /// The bytes as a key list: the number of keys that it announces, its keys, and whether it is complete.
  var keyList: (count: Int, keys: [[UInt8]], isComplete: Bool)? {
    guard var list = unsafe KeyList(span.bytes) else { return nil }
    var keys: [[UInt8]] = []
    while let key = unsafe list.next(span.bytes) { keys.append(Array(self[key])) }
    return unsafe (list.count, keys, list.isComplete(span.bytes))
  }
}
