/// What a backup begins with: `Protocol/backup-format.md`, section 1.
package struct BackupHeader: Equatable, Sendable {
  static let fixedByteCount = 24
  static let version: UInt16 = 1
  private static let magic: [UInt8] = Array("LARDRBAK".utf8)
  private static let checksumPlace = 12..<16

  /// When it was begun, in milliseconds since 1970.
  package let made: UInt64
  package let store: String
  /// What kept the store, as `StoreSpecification` reads it.
  package let specification: String

  /// - Parameters:
  ///   - store: up to 255 bytes, as is the specification.
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
    bytes.replace(at: Self.checksumPlace.lowerBound, littleEndian: bytes.checksum(leavingOut: Self.checksumPlace))
    return bytes
  }

  /// How many bytes the header has that these bytes begin with; nil when they are none.
  /// - Parameter start: at least `fixedByteCount` bytes.
  static func byteCount(_ start: [UInt8]) -> Int? {
    guard start[..<8].elementsEqual(magic) else { return nil }
    return fixedByteCount + Int(start[10]) + Int(start[11])
  }

  /// - Parameter bytes: as many as `byteCount` says.
  init(_ bytes: [UInt8]) throws(BackupDamage) {
    let version = bytes.integer(at: 8, as: UInt16.self)
    guard version == Self.version else {
      throw BackupDamage(
        offset: 8, reason: "the format has version \(version), and this program knows \(Self.version)")
    }
    let name = bytes[Self.fixedByteCount..<Self.fixedByteCount + Int(bytes[10])]
    guard
      bytes.integer(at: Self.checksumPlace.lowerBound, as: UInt32.self)
        == bytes.checksum(leavingOut: Self.checksumPlace),
      let store = String(validating: name, as: UTF8.self),
      let specification = String(validating: bytes[name.endIndex...], as: UTF8.self)
    else { throw BackupDamage(offset: 0, reason: "the header's checksum is wrong") }
    self.init(made: bytes.integer(at: 16, as: UInt64.self), store: store, specification: specification)
  }
}
