/// What a directory store's journal begins with, in two copies, of which a cut-off write damages one at most
/// (Protocol/directory-format.md, §5).
struct WriteAheadLogHeader: Equatable {
  /// What a copy takes in the file.
  static let byteCount = 512
  private static let fieldsByteCount = 36
  private static let mark: [UInt8] = Array("LRDRDIR2".utf8)

  /// How often the journal has started over.
  let sequence: UInt64
  /// The store's revision when it last did.
  let base: UInt64
  /// What all frames since then have in them, and no client can know: what clients wrote is never taken for a frame.
  let salt: UInt64

  private init(sequence: UInt64, base: UInt64, salt: UInt64) {
    self.sequence = sequence
    self.base = base
    self.salt = salt
  }

  /// One with a salt of its own, whose lowest byte isn't zero.
  init(sequence: UInt64, base: UInt64) {
    self.init(sequence: sequence, base: base, salt: .random(in: .min ... .max) | 1)
  }

  var bytes: [UInt8] {
    var bytes = Self.mark
    for field in [sequence, base, salt] { bytes.append(littleEndian: field) }
    bytes.append(littleEndian: bytes.checksum())
    return bytes
  }

  /// The valid copy of the greater sequence among the first bytes of a journal; nil when neither is valid.
  init?(newestIn bytes: [UInt8]) {
    var newest: Self?
    for copy in [0, Self.byteCount] where bytes.count >= copy + Self.fieldsByteCount {
      let fields = Array(bytes[copy..<copy + Self.fieldsByteCount])
      let header = Self(
        sequence: fields.integer(at: 8, as: UInt64.self), base: fields.integer(at: 16, as: UInt64.self),
        salt: fields.integer(at: 24, as: UInt64.self))
      // Neither ever comes to where there is no next one.
      guard max(header.sequence, header.base) <= CommitBuffer.revisions.upperBound else { continue }
      if fields == header.bytes, header.sequence >= newest?.sequence ?? 0 { newest = header }
    }
    guard let newest else { return nil }
    self = newest
  }
}
