/// Makes the bytes of a backup: header, a record for each entry, trailer (`Protocol/backup-format.md`).
///
/// Entries are added in the order of their keys. Owned by whoever writes the file.
package struct BackupWriter: ~Copyable {
  private let header: BackupHeader
  private var records = CommitBuffer()
  private var waiting: [UInt8]
  /// How many bytes were taken.
  private var offset: UInt64 = 0
  package private(set) var entries: UInt64 = 0

  package init(_ header: BackupHeader) {
    self.header = header
    waiting = header.bytes
  }

  /// How many bytes wait to be taken.
  package var count: Int { waiting.count + records.count }

  /// - Parameters:
  ///   - value: of a list, its elements as on the wire.
  ///   - expiry: in milliseconds since 1970; 0 for never.
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

  /// What comes next in the file.
  package mutating func take() -> [UInt8] {
    var bytes = waiting
    waiting = []
    unsafe bytes.append(contentsOf: records.bytes)
    records.removeAll()
    offset += UInt64(bytes.count)
    return bytes
  }

  /// The last bytes of the file.
  package mutating func finish() -> [UInt8] {
    let bytes = take()
    return bytes + BackupTrailer(offset: offset, entries: entries, made: header.made).bytes
  }
}
