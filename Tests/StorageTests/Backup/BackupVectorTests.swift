import EntryFiles
import Foundation
import Testing

@testable import Storage

/// The golden backups: `Protocol/vectors/backup/README.md`.
struct BackupVectorTests {
  struct Vector: Codable, Equatable {
    struct Value: Codable, Equatable {
      var key: String
      var kind: String
      var valueHex: String
      var revision: UInt64
      var expiry: UInt64?
    }

    var name: String
    var hex: String
    var written: Bool?
    var made: UInt64?
    var store: String?
    var specification: String?
    var entries: [Value]?
    var damagedAt: Int?
  }

  private static let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Protocol/vectors/backup/backups.json")

  private static func vectors() throws -> [Vector] {
    try JSONDecoder().decode([Vector].self, from: Data(contentsOf: path))
  }

  @Test func `golden backups are read as specified`() throws {
    let vectors = try Self.vectors()
    #expect(vectors.count >= 6)
    for vector in vectors { #expect(Self.read(vector.name, Self.bytes(vector.hex), written: vector.written) == vector) }
  }

  @Test func `written backups match the golden backups byte for byte`() throws {
    let written = try Self.vectors().filter { $0.written == true }
    #expect(written.map(\.hex) == [Self.hex(BackupTests.written()), Self.hex(BackupTests.written([]))])
  }

  /// Rewrites the vectors. Use this only after a change of the format.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_WRITE_VECTORS"] != nil))
  func `write the golden backups`() throws {
    let whole = BackupTests.written()
    var header = whole
    header[30] ^= 1
    var record = whole
    record[120] ^= 16
    let vectors = [
      Self.read("whole", whole, written: true), Self.read("of-an-empty-store", BackupTests.written([]), written: true),
      Self.read("header-flipped", header), Self.read("record-flipped", record),
      Self.read("without-a-trailer", whole.dropLast(BackupTrailer.byteCount)),
      Self.read("cut-in-a-record", Array(whole[..<120])), Self.read("with-a-byte-more", whole + [0]),
    ]
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try (encoder.encode(vectors) + Data("\n".utf8)).write(to: Self.path)
  }

  private static func read(_ name: String, _ bytes: [UInt8], written: Bool? = nil) -> Vector {
    var reader = BackupReader()
    var vector = Vector(name: name, hex: hex(bytes), written: written)
    do throws(BackupDamage) {
      var isOver = false
      while !isOver {
        let start = reader.offset
        let part = unsafe try bytes.withBytes { (all) throws(BackupDamage) in
          unsafe try reader.next(UnsafeRawBufferPointer(rebasing: all[start...]), isWhole: true)
        }
        switch part {
        case .entry(let entry): vector.entries = (vector.entries ?? []) + [value(entry)]
        case .header: vector.entries = []
        case .incomplete, .end: isOver = true
        }
      }
    } catch { vector.damagedAt = error.offset }
    (vector.made, vector.store) = (reader.header?.made, reader.header?.store)
    vector.specification = reader.header?.specification
    return vector
  }

  private static func value(_ entry: BackupEntry) -> Vector.Value {
    Vector.Value(
      key: entry.key, kind: entry.kind == .list ? "list" : "single", valueHex: hex(entry.value),
      revision: entry.revision, expiry: entry.expiry == 0 ? nil : entry.expiry)
  }

  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { hexadecimalText(UInt64($0), digits: 2) }.joined()
  }

  private static func bytes(_ hex: String) -> [UInt8] {
    let digits = Array(hex.utf8)
    return stride(from: 0, to: digits.count, by: 2).map {
      UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)!
    }
  }
}
