/// A writer of the bytes of a backup: header, a record for each entry, trailer (`Protocol/backup-format.md`).
///
/// Entries are added in the order of their keys. The caller writes the bytes to a file.
package struct BackupWriter: ~Copyable {
  private let header: BackupHeader
  private var records = CommitBuffer()
  /// The header's bytes until they are taken.
  private var pending: [UInt8]
  /// The number of bytes that were taken.
  private var offset: UInt64 = 0
  package private(set) var entries: UInt64 = 0

  package init(_ header: BackupHeader) {
    self.header = header
    pending = header.bytes
  }

  /// The number of bytes that `take` returns.
  package var count: Int { pending.count + records.count }

  /// - Parameters:
  ///   - value: The value; of a list, its elements as on the wire.
  ///   - expiry: In milliseconds since 1970; 0 for never.
  package mutating func add(_ key: String, _ value: [UInt8], kind: EntryKind, expiry: UInt64, revision: UInt64) {
    let key = Array(key.utf8)
    unsafe key.withBytes { key in
      unsafe value.withBytes { value in
        unsafe records.put(
          key, value, kind: kind == .list ? .list : .single, expiry: expiry, revision: revision)
      }
    }
    records.seal()
    entries += 1
  }

  /// Removes and returns the next bytes of the file.
  package mutating func take() -> [UInt8] {
    var bytes = pending
    pending = []
    unsafe bytes.append(contentsOf: records.bytes)
    records.removeAll()
    offset += UInt64(bytes.count)
    return bytes
  }

  /// Returns the last bytes of the file.
  package mutating func finish() -> [UInt8] {
    let bytes = take()
    return bytes + BackupTrailer(offset: offset, entries: entries, made: header.made).bytes
  }
}
