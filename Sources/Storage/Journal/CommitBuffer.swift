import CLinux
import Glibc

/// The commits of a durable store that its journal has not taken yet, as records of a log.
///
///     record                                            operation
///     0   u32  length of the body                       0   u8   kind: 1 single, 2 list, 3 delete, 4 delete all
///     4   u32  CRC32C of length and body,               1   u8   flags: 1 expires, 2 value apart
///              but for values apart                     2   u16  length of the key
///     8   u64  revision                  } body         4   u32  length of the value
///     16       operations, end to end    }              8   u64  expiry, in milliseconds since 1970, if it expires
///                                                       ..  u32  CRC32C of the value, if it is apart
///                                                       ..       key, value
///
/// A value apart has a checksum of its own, so that whoever reads a log can pass over it. All operations of one revision are one record,
/// which is closed by the next revision or by `seal`. Owned by one `EntryMap` and used under its store's lock, so that records stand in
/// the order of their revisions.
@safe
package struct CommitBuffer: ~Copyable {
  /// Values of this many bytes and more are apart.
  package static let separatedByteCount = ExternalValues.minimumByteCount
  package static let recordHeaderByteCount = 8
  /// No store ever comes to the last one, so that there is always a next.
  static let revisions = 1...UInt64(Int64.max)
  package static let operationHeaderByteCount = 8
  /// Of a record.
  static let checksumPlace = 4..<8

  package enum Kind: UInt8, Sendable {
    case single = 1
    case list = 2
    case delete = 3
    case deleteAll = 4
  }

  package enum Flag {
    package static let expires: UInt8 = 1
    package static let separated: UInt8 = 2
  }

  private var base: UnsafeMutableRawPointer?
  private var capacity = 0
  /// Bytes of records, the open one included.
  package private(set) var count = 0
  /// Where the record begins that is open; nil when none is.
  private var openStart: Int?
  /// The revision of the last record; 0 for none.
  package private(set) var lastRevision: UInt64 = 0
  /// The values apart of the open record.
  private var separated: [Range<Int>] = []
  /// Bytes of values that were left out of the open record.
  private var leftOutBytes = 0
  /// How many values apart there are in all records.
  package private(set) var separatedCount = 0

  package init() {}

  deinit { unsafe Glibc.free(base) }

  package var isEmpty: Bool { count == 0 }

  /// The records, once they are sealed; until the buffer is next changed.
  @unsafe
  package var bytes: UnsafeRawBufferPointer {
    precondition(openStart == nil)
    return unsafe UnsafeRawBufferPointer(start: base, count: count)
  }

  /// Adds a put to the record of that revision.
  /// - Parameter expiry: in milliseconds since 1970; 0 for never.
  package mutating func put(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, kind: Kind, expiry: UInt64, revision: UInt64
  ) {
    let isSeparated = value.count >= Self.separatedByteCount
    var flags: UInt8 = 0
    if expiry != 0 { flags |= Flag.expires }
    if isSeparated { flags |= Flag.separated }
    open(revision, room: Self.operationHeaderByteCount + 12 + key.count + value.count)
    appendHeader(kind, flags, keyCount: key.count, valueCount: value.count)
    if expiry != 0 { append(expiry) }
    if isSeparated { append(unsafe value.checksum()) }
    unsafe append(key)
    let start = count
    unsafe append(value)
    guard isSeparated else { return }
    separated.append(start..<count)
    separatedCount += 1
  }

  /// Adds a put to the record of that revision, as far as its value, which is apart and belongs behind all that is there now.
  mutating func put(
    _ key: UnsafeRawBufferPointer, leavingOut byteCount: Int, checksum: UInt32, kind: Kind, expiry: UInt64,
    revision: UInt64
  ) {
    open(revision, room: Self.operationHeaderByteCount + 12 + key.count)
    appendHeader(
      kind, expiry == 0 ? Flag.separated : Flag.separated | Flag.expires, keyCount: key.count, valueCount: byteCount)
    if expiry != 0 { append(expiry) }
    append(checksum)
    unsafe append(key)
    leftOutBytes += byteCount
  }

  package mutating func delete(_ key: UnsafeRawBufferPointer, revision: UInt64) {
    open(revision, room: Self.operationHeaderByteCount + key.count)
    appendHeader(.delete, 0, keyCount: key.count, valueCount: 0)
    unsafe append(key)
  }

  package mutating func deleteAll(revision: UInt64) {
    open(revision, room: Self.operationHeaderByteCount)
    appendHeader(.deleteAll, 0, keyCount: 0, valueCount: 0)
  }

  /// Closes the open record.
  package mutating func seal() {
    guard let start = openStart, let base = unsafe base else { return }
    openStart = nil
    let bodyStart = start + Self.recordHeaderByteCount
    unsafe base.storeBytes(
      of: UInt32(count - bodyStart + leftOutBytes).littleEndian, toByteOffset: start, as: UInt32.self)
    var crc = unsafe crc32c(0, base + start, 4)
    var place = bodyStart
    for value in separated {
      crc = unsafe crc32c(crc, base + place, value.lowerBound - place)
      place = value.upperBound
    }
    crc = unsafe crc32c(crc, base + place, count - place)
    unsafe base.storeBytes(of: crc.littleEndian, toByteOffset: start + 4, as: UInt32.self)
    separated.removeAll(keepingCapacity: true)
    leftOutBytes = 0
  }

  /// Forgets all records, and keeps the memory unless it is much.
  package mutating func removeAll() {
    precondition(openStart == nil)
    count = 0
    separatedCount = 0
    guard capacity > 16 << 20 else { return }
    unsafe Glibc.free(base)
    unsafe base = nil
    capacity = 0
  }

  private mutating func open(_ revision: UInt64, room: Int) {
    if revision != lastRevision || openStart == nil {
      seal()
      reserve(16 + room)
      openStart = count
      count += Self.recordHeaderByteCount
      append(revision)
      lastRevision = revision
    } else {
      reserve(room)
    }
  }

  private mutating func reserve(_ byteCount: Int) {
    guard count + byteCount > capacity else { return }
    let larger = max(64 << 10, count + byteCount, 2 * capacity)
    guard let fresh = unsafe realloc(base, larger) else { fatalError("out of memory") }
    unsafe base = fresh
    capacity = larger
  }

  private mutating func appendHeader(_ kind: Kind, _ flags: UInt8, keyCount: Int, valueCount: Int) {
    append(kind.rawValue)
    append(flags)
    append(UInt16(keyCount))
    append(UInt32(valueCount))
  }

  // There is room: `open` has made it.

  private mutating func append<T: FixedWidthInteger & BitwiseCopyable>(_ value: T) {
    unsafe base!.storeBytes(of: value.littleEndian, toByteOffset: count, as: T.self)
    count += MemoryLayout<T>.size
  }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let from = bytes.baseAddress, bytes.count > 0 else { return }
    unsafe (base! + count).copyMemory(from: from, byteCount: bytes.count)
    count += bytes.count
  }
}
