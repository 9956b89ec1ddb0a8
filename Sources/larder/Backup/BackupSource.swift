import Glibc
import Storage

/// A backup that is read and checked, from a file or from standard input.
struct BackupSource: ~Copyable {
  private let input: InputFile
  private let name: String
  private var buffer: [UInt8]
  private var filled: Range<Int>
  private var isWhole: Bool
  private var reader: BackupReader

  /// - Parameter path: `-` for standard input.
  init(path: String) throws {
    let input = try InputFile(path: path)
    guard !input.isTerminal else {
      throw CommandFailure(.usage, "a backup can't be typed; name a file, or send one through a pipe")
    }
    self.input = input
    name = path == "-" ? "standard input" : "'\(path)'"
    (buffer, filled) = ([UInt8](repeating: 0, count: 256 << 10), 0..<0)
    (reader, isWhole) = (BackupReader(), false)
  }

  /// Bytes in all, when that is known beforehand.
  var size: Int? { input.size }
  /// Up to here all is intact.
  var offset: Int { reader.offset }
  var entries: Int { Int(reader.entries) }
  /// Of the keys and values so far.
  var byteCount: Int { Int(reader.byteCount) }
  /// Nil until it was read.
  var header: BackupHeader? { reader.header }

  /// - Throws: `BackupDamage`, and `CommandFailure` for what can't be read.
  mutating func readHeader() throws -> BackupHeader {
    guard case .header(let header) = try nextPart() else { preconditionFailure("the header is the first part") }
    return header
  }

  /// The next entry; nil at the end, when all of it was intact.
  /// - Throws: as `readHeader`.
  mutating func next() throws -> BackupEntry? {
    while true {
      switch try nextPart() {
      case .header, .incomplete: continue
      case .entry(let entry): return entry
      case .end: return nil
      }
    }
  }

  /// What to say of damage.
  func failure(_ damage: BackupDamage, _ advice: String) -> CommandFailure {
    CommandFailure(.damaged, "\(name) is damaged at byte \(damage.offset): \(damage.reason); \(advice)")
  }

  private mutating func nextPart() throws -> BackupReader.Part {
    while true {
      let start = reader.offset
      let (range, isWhole) = (filled, isWhole)
      let part = unsafe try buffer.withUnsafeBytes { bytes throws(BackupDamage) in
        unsafe try reader.next(UnsafeRawBufferPointer(rebasing: bytes[range]), isWhole: isWhole)
      }
      filled = range.lowerBound + (reader.offset - start)..<range.upperBound
      guard case .incomplete(let byteCount) = part else { return part }
      try fill(to: byteCount)
    }
  }

  /// Reads until there are so many bytes, or no more. The buffer grows with what has come, whatever is asked for.
  private mutating func fill(to byteCount: Int) throws {
    while filled.count < byteCount, !isWhole {
      if filled.lowerBound > 0 {
        let range = filled
        unsafe buffer.withUnsafeMutableBytes { bytes in
          _ = unsafe memmove(bytes.baseAddress!, bytes.baseAddress! + range.lowerBound, range.count)
        }
        filled = 0..<range.count
      }
      if filled.count == buffer.count { buffer += [UInt8](repeating: 0, count: buffer.count) }
      let end = filled.upperBound
      let count = try unsafe buffer.withUnsafeMutableBytes { bytes in
        try unsafe input.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[end...]))
      }
      isWhole = count == 0
      filled = filled.lowerBound..<end + count
    }
  }
}
