import Glibc
import Platform

/// The file of a directory store that has every commit before the entries' files do (Protocol/directory-format.md, §5).
///
/// Its space is allocated ahead, so a commit that fits can't fail for a full disk. Frames of records follow one another
/// after two copies of the header. A reset writes a new header: its salt is in every frame, so older frames become
/// invalid, and so does anything that a client made look like one.
struct WriteAheadLog {
  static let name = ".journal"
  static let start = 2 * WriteAheadLogHeader.byteCount
  static let frameHeaderByteCount = 24
  /// The bytes of a frame that hold its checksum.
  static let checksumRange = 4..<8
  static let saltOffset = 8
  /// The default size of a new log, and the maximum size.
  static let initialByteCount = 4 << 20
  static let maxByteCount = 1 << 30

  private let file: any File
  private(set) var capacity: Int
  private var header: WriteAheadLogHeader
  /// The end of the frames.
  private(set) var end: Int
  /// The end of the part that is on disk.
  private var synced: Int
  private(set) var lastRevision: UInt64

  /// Creates an empty log in the folder, and replaces an existing one.
  static func make(
    in folder: DirectoryFolder, after revision: UInt64, byteCount: Int = initialByteCount
  ) throws(SystemError) -> WriteAheadLog {
    let file = try folder.createTemporaryFile()
    let header = WriteAheadLogHeader(sequence: 0, base: revision)
    for copy in 0..<2 { try file.write(header.bytes, at: copy * WriteAheadLogHeader.byteCount) }
    try file.allocate(byteCount)
    try file.sync()
    try folder.publishTemporaryFile(as: name)
    return WriteAheadLog(
      file: file, capacity: byteCount, header: header, end: start, synced: start, lastRevision: revision)
  }

  private init(
    file: any File, capacity: Int, header: WriteAheadLogHeader, end: Int, synced: Int, lastRevision: UInt64
  ) {
    self.file = file
    self.capacity = capacity
    self.header = header
    self.end = end
    self.synced = synced
    self.lastRevision = lastRevision
  }

  /// Continues after the frames that were read.
  init(_ file: any File, continuing contents: WriteAheadLogContents) {
    self.init(
      file: file, capacity: contents.bytes.count, header: contents.header, end: contents.end,
      synced: Self.start, lastRevision: contents.lastRevision)
  }

  var isEmpty: Bool { end == Self.start }

  var isHalfFull: Bool { end > capacity / 2 }

  /// The number of bytes of records that fit however they are divided into frames: a frame's header is no larger than
  /// the smallest record.
  var availableByteCount: Int { max(0, capacity - end) / 2 }

  func fits(_ byteCount: Int) -> Bool { byteCount + Self.frameHeaderByteCount <= capacity - end }

  /// Appends a frame.
  /// - Returns: The offset of the records in the file.
  mutating func append(_ records: UnsafeRawBufferPointer, last: UInt64) throws(SystemError) -> Int {
    var frame: [UInt8] = []
    frame.reserveCapacity(Self.frameHeaderByteCount + records.count)
    frame.append(littleEndian: UInt32(records.count))
    frame.append(littleEndian: 0 as UInt32)
    frame.append(littleEndian: header.salt)
    frame.append(littleEndian: UInt64(synced))
    unsafe frame.append(contentsOf: records)
    frame.replace(at: Self.checksumRange.lowerBound, littleEndian: frame.checksum(excluding: Self.checksumRange))
    try file.write(frame, at: end)
    let start = end + Self.frameHeaderByteCount
    end += frame.count
    lastRevision = last
    return start
  }

  /// Reads a value back that was written or verified before.
  /// - Throws: If the value has changed since.
  func value(at range: Range<Int>, checksum: UInt32) throws(SystemError) -> [UInt8] {
    let value = try file.bytes(at: range.lowerBound, count: range.count)
    guard value.count == range.count, value.checksum() == checksum else {
      throw SystemError("\(Self.name) is damaged at byte \(range.lowerBound)", errno: EIO)
    }
    return value
  }

  mutating func sync() throws(SystemError) {
    guard synced < end else { return }
    try file.sync()
    synced = end
  }

  /// Resets the log. The effects of all frames must be on disk by other means.
  /// - Throws: Never an error that only means a full disk: it is then unknown which header is valid, so the log can't
  ///   be used any more.
  mutating func reset(after revision: UInt64) throws(SystemError) {
    header = header.next(base: revision)
    do throws(SystemError) {
      try file.write(header.bytes, at: 0)
      try file.sync()
      try file.write(header.bytes, at: WriteAheadLogHeader.byteCount)
      // This shows without the salt that no frame has been written yet.
      try file.write([UInt8](repeating: 0, count: Self.frameHeaderByteCount), at: Self.start)
      try file.sync()
    } catch {
      throw error.isNoSpace ? SystemError("\(error)", errno: EIO) : error
    }
    lastRevision = revision
    (end, synced) = (Self.start, Self.start)
  }

  /// Doubles the size.
  mutating func grow() throws(SystemError) {
    guard capacity < Self.maxByteCount else { throw SystemError.full("fallocate") }
    let newCapacity = min(2 * max(capacity, Self.start), Self.maxByteCount)
    try file.allocate(newCapacity)
    try file.sync()
    (capacity, synced) = (newCapacity, end)
  }

  /// Overwrites everything after the frames, so that nothing there can ever be mistaken for a frame.
  mutating func clearRest() throws(SystemError) {
    let zeroes = [UInt8](repeating: 0, count: 1 << 20)
    for offset in stride(from: end, to: capacity, by: zeroes.count) {
      try file.write(Array(zeroes[..<min(zeroes.count, capacity - offset)]), at: offset)
    }
    try file.sync()
    synced = end
  }
}

/// The header of a directory store's write-ahead log. The file begins with two copies, of which an interrupted write
/// damages at most one (Protocol/directory-format.md, §5).
struct WriteAheadLogHeader: Equatable {
  /// The space of a copy in the file.
  static let byteCount = 512
  private static let fieldsByteCount = 36
  private static let mark: [UInt8] = Array("LRDRDIR2".utf8)

  /// The number of resets.
  private let sequence: UInt64
  /// The store's revision at the last reset.
  fileprivate let base: UInt64
  /// A number in all frames since the last reset that no client can know, so that nothing a client wrote is mistaken
  /// for a frame.
  let salt: UInt64

  private init(sequence: UInt64, base: UInt64, salt: UInt64) {
    self.sequence = sequence
    self.base = base
    self.salt = salt
  }

  /// Creates a header with a new salt, whose lowest byte isn't zero.
  init(sequence: UInt64, base: UInt64) {
    self.init(sequence: sequence, base: base, salt: .random(in: .min ... .max) | 1)
  }

  /// Returns the header of the next reset.
  func next(base: UInt64) -> WriteAheadLogHeader { WriteAheadLogHeader(sequence: sequence + 1, base: base) }

  var bytes: [UInt8] {
    var bytes = Self.mark
    for field in [sequence, base, salt] { bytes.append(littleEndian: field) }
    bytes.append(littleEndian: bytes.checksum())
    return bytes
  }

  /// Decodes the valid copy with the greater sequence from the first bytes of a log; nil if neither copy is valid.
  init?(newestIn bytes: [UInt8]) {
    var newest: Self?
    for copy in [0, Self.byteCount] where bytes.count >= copy + Self.fieldsByteCount {
      let fields = Array(bytes[copy..<copy + Self.fieldsByteCount])
      let header = Self(
        sequence: fields.integer(at: 8, as: UInt64.self), base: fields.integer(at: 16, as: UInt64.self),
        salt: fields.integer(at: 24, as: UInt64.self))
      // Neither field ever reaches a value without a next one.
      guard max(header.sequence, header.base) <= CommitBuffer.revisions.upperBound else { continue }
      if fields == header.bytes, header.sequence >= newest?.sequence ?? 0 { newest = header }
    }
    guard let newest else { return nil }
    self = newest
  }
}

/// The contents of a directory store's write-ahead log, as found on disk.
struct WriteAheadLogContents {
  let bytes: [UInt8]
  let header: WriteAheadLogHeader
  private(set) var lastRevision: UInt64
  /// The end of the valid frames.
  private(set) var end = WriteAheadLog.start
  /// Whether there is another frame that was being written when the process or the machine ended.
  private(set) var isTorn = false
  private(set) var pending = PendingOperations()
  private(set) var operationCount = 0

  /// Damage to what was on disk. The frames before it are intact.
  private(set) var damage: CommitDamage?

  init(reading file: any File) throws(SystemError) {
    // Check this before reading all of it, because the size of the file proves nothing.
    guard let header = WriteAheadLogHeader(newestIn: try file.bytes(at: 0, count: WriteAheadLog.start)) else {
      (bytes, self.header, lastRevision) = ([], WriteAheadLogHeader(sequence: 0, base: 0), 0)
      damage = CommitDamage(offset: 0, reason: "neither header is valid in version 2 of the format")
      return
    }
    (self.header, lastRevision) = (header, header.base)
    guard try file.byteCount() <= WriteAheadLog.maxByteCount else {
      bytes = []
      damage = CommitDamage(offset: WriteAheadLog.maxByteCount, reason: "the file is larger than any journal")
      return
    }
    bytes = try file.contents()
    while let frame = frame(at: end) {
      let records = end + WriteAheadLog.frameHeaderByteCount..<end + frame.byteCount
      do throws(CommitDamage) { try read(records) } catch {
        damage = CommitDamage(offset: records.lowerBound + error.offset, reason: error.reason)
        return
      }
      end = records.upperBound
    }
    scanPastEnd()
  }

  /// Adds the operations of a frame: all of them, or none if one is damaged.
  private mutating func read(_ records: Range<Int>) throws(CommitDamage) {
    var (pending, last, count) = (pending, lastRevision, operationCount)
    unsafe try bytes.withBytes { (bytes) throws(CommitDamage) in
      var reader = unsafe CommitReader(UnsafeRawBufferPointer(rebasing: bytes[records]))
      while let operation = try reader.next() {
        guard CommitBuffer.revisions.contains(operation.revision) else {
          throw CommitDamage(offset: reader.recordStart, reason: "the revision is impossible")
        }
        pending.add(operation, at: records.lowerBound)
        last = max(last, operation.revision)
        count += 1
      }
    }
    (self.pending, lastRevision, operationCount) = (pending, last, count)
  }

  /// Searches for a valid frame after the end, which reveals whether the invalid part before it had been on disk.
  private mutating func scanPastEnd() {
    var offset = end
    while let salt = nextSalt(from: offset + WriteAheadLog.saltOffset) {
      offset = salt - WriteAheadLog.saltOffset
      if offset == end { isTorn = true }
      if let frame = frame(at: offset) {
        isTorn = true
        guard frame.synced <= end else {
          damage = CommitDamage(offset: end, reason: "a frame is invalid, but a later one is valid")
          return
        }
      }
      offset += 1
    }
  }

  /// Returns the next offset of the salt, which only frames since the last reset have. Most other bytes there are of
  /// clients' making; the search skips them and ignores what they claim to be.
  func nextSalt(from start: Int) -> Int? {
    unsafe bytes.withBytes { bytes in
      var offset = start
      while offset <= bytes.count - 8 {
        let word = unsafe bytes.integer(at: offset, as: UInt64.self)
        if word == header.salt { return offset }
        // The salt's lowest byte isn't zero.
        offset += word == 0 ? 8 : 1
      }
      return nil
    }
  }

  /// Returns the valid frame at that offset; nil if there is none.
  private func frame(at offset: Int) -> (byteCount: Int, synced: Int)? {
    guard offset + WriteAheadLog.frameHeaderByteCount <= bytes.count,
      bytes.integer(at: offset + WriteAheadLog.saltOffset, as: UInt64.self) == header.salt
    else { return nil }
    let count = Int(bytes.integer(at: offset, as: UInt32.self))
    let byteCount = WriteAheadLog.frameHeaderByteCount + count
    let synced = bytes.integer(at: offset + 16, as: UInt64.self)
    guard count > 0, byteCount <= bytes.count - offset, synced <= UInt64(offset) else { return nil }
    let checksum = unsafe bytes.withBytes { bytes in
      unsafe UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + byteCount])
        .checksum(excluding: WriteAheadLog.checksumRange)
    }
    guard checksum == bytes.integer(at: offset + 4, as: UInt32.self) else { return nil }
    return (byteCount, Int(synced))
  }
}
