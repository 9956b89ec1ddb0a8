import CLinux
import Glibc

/// The commits of a durable store that its commit writer has not taken yet, as records in the format of a log.
///
///     record                                            operation
///     0   u32  length of the body                       0   u8   kind: 1 single, 2 list, 3 delete, 4 delete all
///     4   u32  CRC32C of length and body,               1   u8   flags: 1 expires, 2 separated value
///              except separated values                  2   u16  length of the key
///     8   u64  revision                  } body         4   u32  length of the value
///     16       operations, end to end    }              8   u64  expiry, in milliseconds since 1970, if it expires
///                                                       ..  u32  CRC32C of the value, if it is separated
///                                                       ..       key, value
///
/// A separated value has a checksum of its own, so that a reader of a log can skip it. All operations of one revision
/// form one record, which the next revision or `seal` closes. One `EntryMap` owns the buffer and uses it under its
/// store's lock, so records are in the order of their revisions.
@safe
package struct CommitBuffer: ~Copyable {
  /// The size from which on a value is separated, in bytes.
  package static let separatedByteCount = ExternalValues.minimumByteCount
  package static let recordHeaderByteCount = 8
  /// The last valid revision. A store refuses writes when it has reached it. A constant, because every write compares
  /// with it.
  @inline(__always)
  static var maxRevision: UInt64 { 1 << 62 - 2 }
  /// The valid revisions.
  static let revisions = 1...maxRevision
  package static let operationHeaderByteCount = 8
  /// The bytes of a record that hold its checksum.
  static let checksumRange = 4..<8

  package enum Kind: UInt8, Sendable {
    case single = 1
    case list = 2
    case delete = 3
    case deleteAll = 4
  }

  package enum Flag {
    package static let expires: UInt8 = 1
    package static let separated: UInt8 = 2
    /// The value is in a commit: a `ValueReference` is in its place.
    static let elsewhere: UInt8 = 4
  }

  private var base: UnsafeMutableRawPointer?
  private var capacity = 0
  /// The number of bytes of records, including the open one.
  package private(set) var count = 0
  /// The offset of the open record; nil if none is open.
  private var openStart: Int?
  /// The revision of the last record; 0 if there is none.
  package private(set) var lastRevision: UInt64 = 0
  /// The separated values of the open record.
  private var separated: [Range<Int>] = []
  /// The number of bytes of values that are omitted from the open record.
  private var omittedByteCount = 0
  /// The number of separated values in all records.
  package private(set) var separatedCount = 0

  package init() {}

  deinit { unsafe Glibc.free(base) }

  package var isEmpty: Bool { count == 0 }
  var memoryBytes: Int { capacity }

  /// The sealed records. Valid until the buffer changes.
  @unsafe
  package var bytes: UnsafeRawBufferPointer {
    precondition(openStart == nil)
    return unsafe UnsafeRawBufferPointer(start: base, count: count)
  }

  /// Adds a put to the record of that revision.
  /// - Parameter expiry: In milliseconds since 1970; 0 for never.
  package mutating func put(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, kind: Kind, expiry: UInt64, revision: UInt64
  ) {
    let isSeparated = value.count >= Self.separatedByteCount
    var flags: UInt8 = 0
    if expiry != 0 { flags |= Flag.expires }
    if isSeparated { flags |= Flag.separated }
    open(revision, reserving: Self.operationHeaderByteCount + 12 + key.count + value.count)
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

  /// Adds a put to the record of that revision without its separated value, which belongs at the current end of the
  /// buffer.
  mutating func put(
    _ key: UnsafeRawBufferPointer, omittingValueOf byteCount: Int, checksum: UInt32, kind: Kind, expiry: UInt64,
    revision: UInt64
  ) {
    open(revision, reserving: Self.operationHeaderByteCount + 12 + key.count)
    appendHeader(
      kind, expiry == 0 ? Flag.separated : Flag.separated | Flag.expires, keyCount: key.count, valueCount: byteCount)
    if expiry != 0 { append(expiry) }
    append(checksum)
    unsafe append(key)
    omittedByteCount += byteCount
  }

  /// Adds a put to the record of that revision with a reference in place of its separated value.
  mutating func put(
    _ key: UnsafeRawBufferPointer, referringTo value: SeparatedValue, at reference: ValueReference, kind: Kind,
    expiry: UInt64, revision: UInt64
  ) {
    open(revision, reserving: Self.operationHeaderByteCount + 12 + key.count + ValueReference.byteCount)
    let flags = Flag.separated | Flag.elsewhere | (expiry == 0 ? 0 : Flag.expires)
    appendHeader(kind, flags, keyCount: key.count, valueCount: value.byteCount)
    if expiry != 0 { append(expiry) }
    append(value.checksum)
    unsafe append(key)
    append(UInt64(bitPattern: reference.position))
    append(UInt64(reference.offset))
  }

  package mutating func delete(_ key: UnsafeRawBufferPointer, revision: UInt64) {
    open(revision, reserving: Self.operationHeaderByteCount + key.count)
    appendHeader(.delete, 0, keyCount: key.count, valueCount: 0)
    unsafe append(key)
  }

  package mutating func deleteAll(revision: UInt64) {
    open(revision, reserving: Self.operationHeaderByteCount)
    appendHeader(.deleteAll, 0, keyCount: 0, valueCount: 0)
  }

  /// Closes the open record.
  package mutating func seal() {
    guard let start = openStart, let base = unsafe base else { return }
    openStart = nil
    let bodyStart = start + Self.recordHeaderByteCount
    unsafe base.storeBytes(
      of: UInt32(count - bodyStart + omittedByteCount).littleEndian, toByteOffset: start, as: UInt32.self)
    var crc = unsafe crc32c(0, base + start, 4)
    var offset = bodyStart
    for value in separated {
      crc = unsafe crc32c(crc, base + offset, value.lowerBound - offset)
      offset = value.upperBound
    }
    crc = unsafe crc32c(crc, base + offset, count - offset)
    unsafe base.storeBytes(of: crc.littleEndian, toByteOffset: start + 4, as: UInt32.self)
    separated.removeAll(keepingCapacity: true)
    omittedByteCount = 0
  }

  /// Reserves memory for as many more bytes of records.
  mutating func reserveCapacity(_ byteCount: Int) { reserve(byteCount) }

  /// Adds the records of another buffer. Both are sealed.
  mutating func append(_ other: borrowing CommitBuffer) {
    precondition(openStart == nil)
    reserve(other.count)
    unsafe append(other.bytes)
    lastRevision = other.lastRevision
    separatedCount += other.separatedCount
  }

  /// Removes all records. Keeps the memory unless it is large.
  package mutating func removeAll() {
    precondition(openStart == nil)
    count = 0
    separatedCount = 0
    guard capacity > 16 << 20 else { return }
    unsafe Glibc.free(base)
    unsafe base = nil
    capacity = 0
  }

  /// Opens the record of a revision unless it is open, with space for an operation of that size.
  private mutating func open(_ revision: UInt64, reserving byteCount: Int) {
    if revision != lastRevision || openStart == nil {
      seal()
      reserve(16 + byteCount)
      openStart = count
      count += Self.recordHeaderByteCount
      append(revision)
      lastRevision = revision
    } else {
      reserve(byteCount)
    }
  }

  private mutating func reserve(_ byteCount: Int) {
    guard count + byteCount > capacity else { return }
    let newCapacity = max(64 << 10, count + byteCount, 2 * capacity)
    guard let newBase = unsafe realloc(base, newCapacity) else { fatalError("out of memory") }
    unsafe base = newBase
    capacity = newCapacity
  }

  private mutating func appendHeader(_ kind: Kind, _ flags: UInt8, keyCount: Int, valueCount: Int) {
    append(kind.rawValue)
    append(flags)
    append(UInt16(keyCount))
    append(UInt32(valueCount))
  }

  // `open` has reserved the space for what follows.

  private mutating func append<T: FixedWidthInteger & BitwiseCopyable>(_ value: T) {
    unsafe base!.storeBytes(of: value.littleEndian, toByteOffset: count, as: T.self)
    count += MemoryLayout<T>.size
  }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    unsafe (base! + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }
}
