import Glibc
import Larder
import Storage

/// A backup that is read and checked, from a file or from standard input.
struct BackupInput: ~Copyable {
  private let file: InputFile
  private let name: String
  private var buffer: [UInt8]
  /// The part of the buffer that contains unread bytes.
  private var unread: Range<Int>
  private var isAtEnd: Bool
  private var reader: BackupReader

  /// - Parameter path: The file's path, or `-` for standard input.
  init(path: String) throws {
    let file = try InputFile(path: path)
    guard !file.isTerminal else {
      throw CommandFailure(.usage, "a backup can't be read from a terminal; name a file, or pipe one in")
    }
    self.file = file
    name = path == "-" ? "standard input" : "'\(path)'"
    (buffer, unread) = ([UInt8](repeating: 0, count: 256 << 10), 0..<0)
    (reader, isAtEnd) = (BackupReader(), false)
  }

  /// The total size in bytes, if it is known.
  var size: Int? { file.size }
  /// The offset up to which the backup is intact.
  var offset: Int { reader.offset }
  var entryCount: Int { Int(reader.entries) }
  /// The highest revision of the entries so far: the snapshot has all changes up to it.
  private(set) var revision: UInt64 = 0
  /// The size of the keys and values so far.
  var byteCount: Int { Int(reader.byteCount) }
  /// The header, once it has been read.
  var header: BackupHeader? { reader.header }

  /// Reads the header, which is the first part of a backup.
  /// - Throws: `BackupDamage`, or `CommandFailure` if reading fails.
  mutating func readHeader() throws -> BackupHeader {
    guard case .header(let header) = try nextPart() else { preconditionFailure("the header is not the first part") }
    return header
  }

  /// Returns the next entry, or nil at the end of an intact backup.
  /// - Throws: `BackupDamage`, or `CommandFailure` if reading fails.
  mutating func next() throws -> BackupEntry? {
    while true {
      switch try nextPart() {
      case .header, .incomplete: continue
      case .entry(let entry):
        revision = max(revision, entry.revision)
        return entry
      case .end: return nil
      }
    }
  }

  /// Returns the error that reports damage.
  func failure(_ damage: BackupDamage, _ advice: String) -> CommandFailure {
    guard damage.isOfBackup else {
      return CommandFailure(
        .damaged, "\(name) is not a backup; 'larder backup' makes backups, and 'larder load' reads lines of JSON")
    }
    return CommandFailure(.damaged, "\(name) is damaged at byte \(damage.offset): \(damage.reason); \(advice)")
  }

  private mutating func nextPart() throws -> BackupReader.Event {
    while true {
      let start = reader.offset
      let (range, isAtEnd) = (unread, isAtEnd)
      let part = unsafe try buffer.withUnsafeBytes { bytes throws(BackupDamage) in
        unsafe try reader.next(UnsafeRawBufferPointer(rebasing: bytes[range]), isWhole: isAtEnd)
      }
      unread = range.lowerBound + (reader.offset - start)..<range.upperBound
      guard case .incomplete(let byteCount) = part else { return part }
      try fill(to: byteCount)
    }
  }

  /// Reads until `byteCount` bytes are unread, or to the end. The buffer grows with the bytes that arrive, so a damaged
  /// length cannot make it large.
  private mutating func fill(to byteCount: Int) throws {
    while unread.count < byteCount, !isAtEnd {
      if unread.lowerBound > 0 {
        let range = unread
        unsafe buffer.withUnsafeMutableBytes { bytes in
          _ = unsafe memmove(bytes.baseAddress!, bytes.baseAddress! + range.lowerBound, range.count)
        }
        unread = 0..<range.count
      }
      if unread.count == buffer.count { buffer += [UInt8](repeating: 0, count: buffer.count) }
      let end = unread.upperBound
      let count = try unsafe buffer.withUnsafeMutableBytes { bytes in
        try unsafe file.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[end...]))
      }
      isAtEnd = count == 0
      unread = unread.lowerBound..<end + count
    }
  }
}

/// The form of a value in a backup, which is the form on the wire: the elements of a list follow each other, each after
/// its length.
extension EntryValue {
  /// Returns nil if the bytes are not a valid list.
  init?(_ kind: EntryKind, backupBytes bytes: [UInt8]) {
    guard kind == .list else {
      self = .single(bytes)
      return
    }
    var elements: [[UInt8]] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard rest.count >= 4 else { return nil }
      let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      guard count <= rest.count else { return nil }
      elements.append(Array(rest.prefix(count)))
      rest = rest.dropFirst(count)
    }
    self = .list(elements)
  }

  var kind: EntryKind {
    switch self {
    case .single: .single
    case .list: .list
    }
  }

  var backupBytes: [UInt8] {
    switch self {
    case .single(let bytes): return bytes
    case .list(let elements):
      var bytes: [UInt8] = []
      for element in elements {
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: element.count >> shift)) }
        bytes += element
      }
      return bytes
    }
  }
}
