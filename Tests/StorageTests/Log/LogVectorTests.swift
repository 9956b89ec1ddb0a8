import Foundation
import Platform
import SimulatedDisk
import Testing

@testable import Storage

/// The golden logs: `Protocol/vectors/log/README.md`.
struct LogVectorTests {
  struct Vector: Codable, Equatable {
    struct Value: Codable, Equatable {
      var kind: String
      var revision: UInt64
      var valueHex: String
      var expiry: UInt64?
    }

    struct Refusal: Codable, Equatable {
      var file: String
      var offset: Int
    }

    var name: String
    var now: UInt64
    var files: [String: String]
    var entries: [String: Value]?
    var revision: UInt64?
    var cutBytes: Int?
    var damage: Refusal?
  }

  private static let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Protocol/vectors/log/logs.json")

  @Test func `golden logs are read as specified`() throws {
    let vectors = try JSONDecoder().decode([Vector].self, from: Data(contentsOf: Self.path))
    #expect(vectors.count >= 6)
    for vector in vectors { #expect(try Self.read(vector) == vector) }
  }

  @Test func `written logs match the golden log byte for byte`() throws {
    let vectors = try JSONDecoder().decode([Vector].self, from: Data(contentsOf: Self.path))
    #expect(vectors.first { $0.name == "sealed" }?.files == (try Self.written()).mapValues(Self.hex))
  }

  /// Rewrites the vectors. Use this only after a change of the format.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_WRITE_VECTORS"] != nil))
  func `write the golden logs`() throws {
    let files = try Self.written()
    let segment = try #require(files["0000000001.log"])
    func vector(_ name: String, _ bytes: [UInt8]) throws -> Vector {
      try Self.read(
        Vector(name: name, now: WriteOperation.clockOffset + 100, files: ["0000000001.log": Self.hex(bytes)]))
    }
    var open = Array(segment.dropLast(SegmentTrailer.byteCount))
    open += [UInt8](repeating: 0, count: 24)
    var flipped = segment
    flipped[90] ^= 4
    var torn = open
    torn.replaceSubrange(open.count - 24..<open.count - 19, with: [9, 0, 0, 0, 1])
    var header = segment
    header[30] ^= 1
    let vectors = [
      try vector("sealed", segment), try vector("not sealed", open),
      try vector("cut in the last record", Array(open.dropLast(30))),
      try vector("a torn tail", torn), try vector("a bit flipped in a record", flipped),
      try vector("a bit flipped in the header", header),
      try Self.read(
        Vector(
          name: "a segment is missing", now: WriteOperation.clockOffset, files: ["0000000002.log": Self.hex(segment)])),
    ]
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try (encoder.encode(vectors) + Data("\n".utf8)).write(to: Self.path)
  }

  /// Returns the files of a small log with every kind of operation.
  private static func written() throws -> [String: [UInt8]] {
    let disk = SimulatedDisk(seed: 1)
    var configuration = LogConfiguration.tiny
    configuration.markInterval = 200
    let log = try TestLog(disk, configuration: configuration)
    try log.commit([.put(key: "gone", value: [0xFF], kind: .single, expiry: 0)])
    try log.commit([.deleteAll])
    try log.commit([.put(key: "a", value: [1, 2, 3], kind: .single, expiry: 0)])
    try log.commit([.put(key: "list/é", value: [1, 0, 0, 0, 7], kind: .list, expiry: 0)])
    try log.commit([.put(key: "expires", value: [], kind: .single, expiry: 5_000)])
    try log.commit([.put(key: "expired", value: [8], kind: .single, expiry: 50), .delete(key: "a")])
    try log.commit([.put(key: "last", value: [UInt8](repeating: 0x61, count: 20), kind: .single, expiry: 0)])
    try log.engine.close()
    return ["0000000001.log": disk.contents("/log/0000000001.log")!]
  }

  /// Reads a vector's files.
  private static func read(_ vector: Vector) throws -> Vector {
    var result = Vector(name: vector.name, now: vector.now, files: vector.files)
    let disk = SimulatedDisk(seed: 1)
    try disk.createFolder("/log")
    for (name, hex) in vector.files { disk.place("/log/\(name)", bytes(hex)) }
    do {
      let log = try TestLog(disk, now: vector.now - WriteOperation.clockOffset)
      result.entries = try log.entries(now: vector.now - WriteOperation.clockOffset).mapValues { entry in
        Vector.Value(
          kind: "\(entry.kind)", revision: entry.revision, valueHex: hex(entry.value),
          expiry: entry.expiry == 0 ? nil : entry.expiry + WriteOperation.clockOffset)
      }
      result.revision = log.revision
      result.cutBytes = log.recovery.truncatedBytes
    } catch LogError.damaged(let path, let offset, _) {
      result.damage = Vector.Refusal(file: String(path.dropFirst(5)), offset: offset)
    }
    return result
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  private static func bytes(_ hex: String) -> [UInt8] {
    let digits = Array(hex.utf8).map { UInt8($0 > 57 ? $0 - 87 : $0 - 48) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
