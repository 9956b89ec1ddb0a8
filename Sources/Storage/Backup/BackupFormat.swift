import Documents

/// The header of a backup: `Protocol/backup-format.md`, section 1.
///
/// It has version 2 if the store has indexes, and otherwise version 1, which older programs can read.
package struct BackupHeader: Equatable, Sendable {
  /// The size of the fields that every version has.
  static let fixedByteCount = 24
  /// The size of the field for the size of the index definitions, in version 2.
  private static let indexesSizeByteCount = 4
  /// The number of bytes that reveal the size of any header.
  static let maxFixedByteCount = fixedByteCount + indexesSizeByteCount
  private static let plainVersion: UInt16 = 1
  private static let indexesVersion: UInt16 = 2
  private static let magic: [UInt8] = Array("LARDRBAK".utf8)
  private static let checksumRange = 12..<16

  /// The time when the backup was started, in milliseconds since 1970.
  package let made: UInt64
  package let store: String
  /// The kind of the store, as `StoreSpecification` parses it.
  package let specification: String
  /// The definitions of the store's indexes.
  package let indexes: [DocumentIndex]

  /// - Parameters:
  ///   - store: Up to 255 bytes.
  ///   - specification: Up to 255 bytes.
  ///   - indexes: Definitions that `fits` permits.
  package init(made: UInt64, store: String, specification: String, indexes: [DocumentIndex] = []) {
    precondition(
      store.utf8.count <= 255 && specification.utf8.count <= 255, "the name or the engine of the store is too long")
    precondition(Self.fits(indexes), "the definitions of the store's indexes are too large")
    self.made = made
    self.store = store
    self.specification = specification
    self.indexes = indexes
  }

  /// Returns whether a header has space for these definitions: 64 of them, and 1 MiB.
  package static func fits(_ indexes: [DocumentIndex]) -> Bool {
    indexes.count <= Store.maxIndexCount
      && IndexDefinitions.bytes(of: indexes).count <= IndexDefinitions.maxByteCount
  }

  var bytes: [UInt8] {
    let definitions = IndexDefinitions.bytes(of: indexes)
    var bytes = Self.magic
    bytes.append(littleEndian: definitions.isEmpty ? Self.plainVersion : Self.indexesVersion)
    bytes.append(UInt8(store.utf8.count))
    bytes.append(UInt8(specification.utf8.count))
    bytes.append(littleEndian: 0 as UInt32)
    bytes.append(littleEndian: made)
    if !definitions.isEmpty { bytes.append(littleEndian: UInt32(definitions.count)) }
    bytes += store.utf8
    bytes += specification.utf8
    bytes += definitions
    bytes.replace(at: Self.checksumRange.lowerBound, littleEndian: bytes.checksum(excluding: Self.checksumRange))
    return bytes
  }

  /// Returns whether a file that begins with these bytes can be a backup.
  static func canBegin(with bytes: [UInt8]) -> Bool { magic.starts(with: bytes.prefix(magic.count)) }

  /// Returns the size of the header that starts with these bytes, or how many bytes it takes to know.
  /// - Parameter start: At least `fixedByteCount` bytes.
  static func byteCount(_ start: [UInt8]) throws(BackupDamage) -> Int {
    guard start[..<8].elementsEqual(magic) else {
      throw .isNoBackup
    }
    let version = start.integer(at: 8, as: UInt16.self)
    guard version == plainVersion || version == indexesVersion else {
      throw BackupDamage(
        offset: 8,
        reason: "the format has version \(version), but this program supports only versions \(plainVersion) and "
          + "\(indexesVersion)")
    }
    let byteCount = fixedByteCount + Int(start[10]) + Int(start[11])
    guard version == indexesVersion else { return byteCount }
    guard start.count >= maxFixedByteCount else { return maxFixedByteCount }
    let indexesByteCount = Int(start.integer(at: fixedByteCount, as: UInt32.self))
    guard (1...IndexDefinitions.maxByteCount).contains(indexesByteCount) else {
      throw BackupDamage(offset: fixedByteCount, reason: "the size of the index definitions is impossible")
    }
    return byteCount + indexesSizeByteCount + indexesByteCount
  }

  /// Decodes a header.
  /// - Parameter bytes: Exactly the number of bytes that `byteCount` returns.
  init(_ bytes: [UInt8]) throws(BackupDamage) {
    let hasIndexes = bytes.integer(at: 8, as: UInt16.self) == Self.indexesVersion
    let start = Self.fixedByteCount + (hasIndexes ? Self.indexesSizeByteCount : 0)
    let name = bytes[start..<start + Int(bytes[10])]
    let definitions = bytes[(name.endIndex + Int(bytes[11]))...]
    guard
      bytes.integer(at: Self.checksumRange.lowerBound, as: UInt32.self)
        == bytes.checksum(excluding: Self.checksumRange),
      let store = String(validating: name, as: UTF8.self),
      let specification = String(validating: bytes[name.endIndex..<definitions.startIndex], as: UTF8.self)
    else { throw BackupDamage(offset: 0, reason: "the header's checksum is wrong") }
    self.made = bytes.integer(at: 16, as: UInt64.self)
    self.store = store
    self.specification = specification
    do throws(IndexDefinitions.ParseError) { indexes = try IndexDefinitions.indexes(in: definitions) } catch {
      throw BackupDamage(offset: definitions.startIndex, reason: "the index definitions are invalid: \(error)")
    }
  }
}

/// The trailer of a backup: `Protocol/backup-format.md`, section 3. Without it, the end of the backup is missing.
struct BackupTrailer: Equatable, Sendable {
  static let byteCount = 32

  private let offset: UInt64
  private let entries: UInt64
  private let made: UInt64

  /// - Parameters:
  ///   - offset: The offset of the trailer in the file.
  ///   - made: The time in the header.
  init(offset: UInt64, entries: UInt64, made: UInt64) {
    self.offset = offset
    self.entries = entries
    self.made = made
  }

  var bytes: [UInt8] {
    var body: [UInt8] = []
    for field in [offset, entries, made] { body.append(littleEndian: field) }
    var bytes: [UInt8] = []
    bytes.append(littleEndian: 0 as UInt32)
    bytes.append(littleEndian: body.checksum())
    return bytes + body
  }
}

/// An entry of a backup.
package struct BackupEntry: Equatable, Sendable {
  package let key: String
  package let kind: EntryKind
  /// The value; of a list, its elements as on the wire.
  package let value: [UInt8]
  /// In milliseconds since 1970; 0 for never.
  package let expiry: UInt64
  package let revision: UInt64
}

/// Why a file is not an intact backup, and from which byte on.
package struct BackupDamage: Error, Equatable, Sendable {
  package let offset: Int
  package let reason: String

  /// The damage of a file that is something else than a backup.
  static let isNoBackup = BackupDamage(offset: 0, reason: "this is not a backup of a store")

  /// A Boolean value that indicates whether the file begins as a backup does.
  package var isOfBackup: Bool { self != .isNoBackup }
}
