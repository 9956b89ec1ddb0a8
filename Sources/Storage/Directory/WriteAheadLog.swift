import Glibc
import Platform

/// The file of a directory store that has every commit before the entries' files have (Protocol/directory-format.md, §5).
///
/// Its space is taken ahead, so a commit that finds room can't meet a full disk. Frames of records follow one another behind two copies of
/// the header. Starting over is a new header: its salt is in every frame, so frames of before are invalid, and so is whatever a client made
/// look like one.
struct WriteAheadLog {
  static let name = ".journal"
  static let start = 2 * WriteAheadLogHeader.byteCount
  static let frameHeaderByteCount = 24
  /// Of a frame.
  static let checksumPlace = 4..<8
  static let saltOffset = 8
  /// What a journal is made with unless the sink says otherwise, and the most it grows to.
  static let initialByteCount = 4 << 20
  static let maximumByteCount = 1 << 30

  let file: any File
  private(set) var capacity: Int
  private var header: WriteAheadLogHeader
  /// Where the next frame goes.
  private(set) var tail: Int
  /// All frames ahead of this are on the disk.
  private(set) var synced: Int
  private(set) var lastRevision: UInt64

  /// Makes an empty journal in the folder, in the place of any that is there.
  static func make(
    in folder: DirectoryFolder, after revision: UInt64, byteCount: Int = initialByteCount
  ) throws(SystemError) -> WriteAheadLog {
    let temporary = folder.temporaryPath
    if try folder.fileSystem.kind(of: temporary) != nil { try folder.fileSystem.remove(temporary) }
    let file = try folder.fileSystem.open(temporary, .making)
    let header = WriteAheadLogHeader(sequence: 0, base: revision)
    for copy in 0..<2 { try file.write(header.bytes, at: copy * WriteAheadLogHeader.byteCount) }
    try file.allocate(byteCount)
    try file.sync()
    try folder.fileSystem.rename(temporary, to: folder.path(name))
    try folder.fileSystem.syncFolder(folder.path)
    return WriteAheadLog(
      file: file, capacity: byteCount, header: header, tail: start, synced: start, lastRevision: revision)
  }

  private init(
    file: any File, capacity: Int, header: WriteAheadLogHeader, tail: Int, synced: Int, lastRevision: UInt64
  ) {
    self.file = file
    self.capacity = capacity
    self.header = header
    self.tail = tail
    self.synced = synced
    self.lastRevision = lastRevision
  }

  /// Goes on behind what was read.
  init(_ file: any File, behind contents: WriteAheadLogContents) {
    self.init(
      file: file, capacity: contents.bytes.count, header: contents.header, tail: contents.tail,
      synced: Self.start, lastRevision: contents.lastRevision)
  }

  var isEmpty: Bool { tail == Self.start }

  var isHalfFull: Bool { tail > capacity / 2 }

  /// How many bytes of records there is room for however they are divided: a frame's header takes no more than the smallest record.
  var room: Int { max(0, capacity - tail) / 2 }

  func fits(_ byteCount: Int) -> Bool { byteCount + Self.frameHeaderByteCount <= capacity - tail }

  /// - Returns: where the records begin in the file.
  mutating func append(_ records: UnsafeRawBufferPointer, last: UInt64) throws(SystemError) -> Int {
    var frame: [UInt8] = []
    frame.reserveCapacity(Self.frameHeaderByteCount + records.count)
    frame.append(littleEndian: UInt32(records.count))
    frame.append(littleEndian: 0 as UInt32)
    frame.append(littleEndian: header.salt)
    frame.append(littleEndian: UInt64(synced))
    unsafe frame.append(contentsOf: records)
    frame.replace(at: Self.checksumPlace.lowerBound, littleEndian: frame.checksum(leavingOut: Self.checksumPlace))
    try file.write(frame, at: tail)
    let place = tail + Self.frameHeaderByteCount
    tail += frame.count
    lastRevision = last
    return place
  }

  /// Reads a value again that was written or verified before.
  /// - Throws: when it isn't what it was then.
  func value(at place: Range<Int>, checksum: UInt32) throws(SystemError) -> [UInt8] {
    let value = try file.bytes(at: place.lowerBound, count: place.count)
    guard value.count == place.count, value.checksum() == checksum else {
      throw SystemError("\(Self.name) is damaged at byte \(place.lowerBound)", errno: EIO)
    }
    return value
  }

  mutating func sync() throws(SystemError) {
    guard synced < tail else { return }
    try file.sync()
    synced = tail
  }

  /// Starts over: every frame's effect must be on the disk by other means.
  /// - Throws: never for a full disk alone. Which header counts isn't known then, so that the journal can't go on.
  mutating func startOver(after revision: UInt64) throws(SystemError) {
    header = WriteAheadLogHeader(sequence: header.sequence + 1, base: revision)
    do throws(SystemError) {
      try file.write(header.bytes, at: 0)
      try file.sync()
      try file.write(header.bytes, at: WriteAheadLogHeader.byteCount)
      // It can be seen there, without the salt, that no frame has been written yet.
      try file.write([UInt8](repeating: 0, count: Self.frameHeaderByteCount), at: Self.start)
      try file.sync()
    } catch {
      throw error.isNoSpace ? SystemError("\(error)", errno: EIO) : error
    }
    lastRevision = revision
    (tail, synced) = (Self.start, Self.start)
  }

  /// Takes twice the space.
  mutating func grow() throws(SystemError) {
    guard capacity < Self.maximumByteCount else { throw SystemError.full("fallocate") }
    let larger = min(2 * max(capacity, Self.start), Self.maximumByteCount)
    try file.allocate(larger)
    try file.sync()
    (capacity, synced) = (larger, tail)
  }

  /// Overwrites all that is behind the tail, so that nothing of it can ever be taken for a frame.
  mutating func clearRest() throws(SystemError) {
    let zeroes = [UInt8](repeating: 0, count: 1 << 20)
    for place in stride(from: tail, to: capacity, by: zeroes.count) {
      try file.write(Array(zeroes[..<min(zeroes.count, capacity - place)]), at: place)
    }
    try file.sync()
    synced = tail
  }
}
