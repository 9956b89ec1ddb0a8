import Foundation
import TestSupport
import Testing

@testable import Storage

/// The golden backups: `Protocol/vectors/backup/README.md`.
struct BackupVectorTests {
  struct Vector: Codable, Equatable {
    private struct Value: Codable, Equatable {
      private let key: String
      private let kind: String
      private let valueHex: String
      private let revision: UInt64
      private let expiry: UInt64?

      init(_ entry: BackupEntry) {
        (key, kind) = (entry.key, entry.kind == .list ? "list" : "single")
        (valueHex, revision) = (entry.value.hex, entry.revision)
        expiry = entry.expiry == 0 ? nil : entry.expiry
      }
    }

    let hex: String
    let written: Bool?
    private let name: String
    private var made: UInt64?
    private var store: String?
    private var specification: String?
    /// The lines of the index definitions.
    private var indexes: [String]?
    private var entries: [Value]?
    private var damagedAt: Int?

    /// Reads a backup that consists of these bytes.
    init(_ name: String, _ bytes: [UInt8], written: Bool? = nil) {
      (self.name, self.written, hex) = (name, written, bytes.hex)
      var reader = BackupReader()
      do throws(BackupDamage) {
        var isOver = false
        while !isOver {
          let start = reader.offset
          let part = unsafe try bytes.withBytes { (all) throws(BackupDamage) in
            unsafe try reader.next(UnsafeRawBufferPointer(rebasing: all[start...]), isWhole: true)
          }
          switch part {
          case .entry(let entry): entries = (entries ?? []) + [Value(entry)]
          case .header: entries = []
          case .incomplete, .end: isOver = true
          }
        }
      } catch { damagedAt = error.offset }
      (made, store) = (reader.header?.made, reader.header?.store)
      specification = reader.header?.specification
      if let header = reader.header, !header.indexes.isEmpty { indexes = header.indexes.map { "\($0)" } }
    }

    /// Returns the vector with the results of reading its bytes now.
    func readAgain() -> Vector { Vector(name, [UInt8](hex: hex), written: written) }
  }

  private static let path = "backup/backups.json"

  @Test func `golden backups are read as specified`() throws {
    let vectors = try ProjectFiles.vectors(Self.path, as: Vector.self)
    #expect(vectors.count >= 12)
    for vector in vectors { #expect(vector.readAgain() == vector) }
  }

  @Test func `written backups match the golden backups byte for byte`() throws {
    let written = try ProjectFiles.vectors(Self.path, as: Vector.self).filter { $0.written == true }
    let backups = [
      BackupTests.written(), BackupTests.written([]),
      BackupTests.written(BackupTests.entries, BackupTests.indexedHeader),
      BackupTests.written([], BackupTests.indexedHeader),
    ]
    #expect(written.map(\.hex) == backups.map(\.hex))
  }

  /// Rewrites the vectors. Use this only after a change of the format.
  @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_WRITE_VECTORS"] != nil))
  func `write the golden backups`() throws {
    let whole = BackupTests.written()
    var header = whole
    header[30] ^= 1
    var record = whole
    record[120] ^= 16
    let indexed = BackupTests.written(BackupTests.entries, BackupTests.indexedHeader)
    var (definition, size, version) = (indexed, indexed, whole)
    definition[80] ^= 2
    size[27] = 1
    version[8] = 3
    let vectors = [
      Vector("whole", whole, written: true), Vector("of-an-empty-store", BackupTests.written([]), written: true),
      Vector("header-flipped", header), Vector("record-flipped", record),
      Vector("without-a-trailer", whole.dropLast(BackupTrailer.byteCount)),
      Vector("cut-in-a-record", Array(whole[..<120])), Vector("with-a-byte-more", whole + [0]),
      Vector("with-indexes", indexed, written: true),
      Vector(
        "with-indexes-of-an-empty-store", BackupTests.written([], BackupTests.indexedHeader), written: true),
      Vector("index-definition-flipped", definition), Vector("cut-in-the-index-definitions", Array(indexed[..<100])),
      Vector("with-definitions-that-are-too-large", size), Vector("of-an-unknown-version", version),
    ]
    try ProjectFiles.writeVectors(vectors, to: Self.path)
  }
}
