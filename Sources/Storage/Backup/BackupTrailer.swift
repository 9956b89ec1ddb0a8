/// What a backup ends with: `Protocol/backup-format.md`, section 3. Without it, the end is missing.
struct BackupTrailer: Equatable, Sendable {
  static let byteCount = 32

  /// Where it is in the file.
  let offset: UInt64
  let entries: UInt64
  /// The header's.
  let made: UInt64

  var bytes: [UInt8] {
    var body: [UInt8] = []
    for field in [offset, entries, made] { body.append(littleEndian: field) }
    var bytes: [UInt8] = []
    bytes.append(littleEndian: 0 as UInt32)
    bytes.append(littleEndian: body.checksum())
    return bytes + body
  }
}
