/// The header of a backup: `Protocol/backup-format.md`, section 1.
package struct BackupHeader: Equatable, Sendable {
  static let fixedByteCount = 24
  private static let version: UInt16 = 1
  private static let magic: [UInt8] = Array("LARDRBAK".utf8)
  private static let checksumRange = 12..<16

  /// The time when the backup was started, in milliseconds since 1970.
  package let made: UInt64
  package let store: String
  /// The kind of the store, as `StoreSpecification` parses it.
  package let specification: String

  /// - Parameters:
  ///   - store: Up to 255 bytes.
  ///   - specification: Up to 255 bytes.
  package init(made: UInt64, store: String, specification: String) {
    precondition(store.utf8.count <= 255 && specification.utf8.count <= 255, "a server has no such store")
    self.made = made
    self.store = store
    self.specification = specification
  }

  var bytes: [UInt8] {
    var bytes = Self.magic
    bytes.append(littleEndian: Self.version)
    bytes.append(UInt8(store.utf8.count))
    bytes.append(UInt8(specification.utf8.count))
    bytes.append(littleEndian: 0 as UInt32)
    bytes.append(littleEndian: made)
    bytes += store.utf8
    bytes += specification.utf8
    bytes.replace(at: Self.checksumRange.lowerBound, littleEndian: bytes.checksum(excluding: Self.checksumRange))
    return bytes
  }

  /// Returns the size of the header that starts with these bytes; nil if they don't start a header.
  /// - Parameter start: At least `fixedByteCount` bytes.
  static func byteCount(_ start: [UInt8]) -> Int? {
    guard start[..<8].elementsEqual(magic) else { return nil }
    return fixedByteCount + Int(start[10]) + Int(start[11])
  }

  /// Decodes a header.
  /// - Parameter bytes: Exactly the number of bytes that `byteCount` returns.
  init(_ bytes: [UInt8]) throws(BackupDamage) {
    let version = bytes.integer(at: 8, as: UInt16.self)
    guard version == Self.version else {
      throw BackupDamage(
        offset: 8, reason: "the format has version \(version), but this program only knows version \(Self.version)")
    }
    let name = bytes[Self.fixedByteCount..<Self.fixedByteCount + Int(bytes[10])]
    guard
      bytes.integer(at: Self.checksumRange.lowerBound, as: UInt32.self)
        == bytes.checksum(excluding: Self.checksumRange),
      let store = String(validating: name, as: UTF8.self),
      let specification = String(validating: bytes[name.endIndex...], as: UTF8.self)
    else { throw BackupDamage(offset: 0, reason: "the header's checksum is wrong") }
    self.init(made: bytes.integer(at: 16, as: UInt64.self), store: store, specification: specification)
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
}
