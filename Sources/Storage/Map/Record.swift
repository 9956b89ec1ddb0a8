import Platform

/// An entry as it lies in the arena.
///
///     0   u32   key length - 1 (12 bits), kind (1), has expiry (1), external (1), value length (15), arena's own (2)
///     4   u64   revision; its uppermost bit is the mark of entries that were used, in stores with a limit
///     12  u64   expiry, in milliseconds, when the entry has one
///     ..        key
///     ..        value; of an external one, its address among the `ExternalValues`
///
/// With a key of 16 bytes and a value of 100 that is 128 bytes, nothing lost to rounding. A record is only ever read
/// and written under its store's lock, and is valid until its block is freed.
@safe
struct Record {
  private static let listBit: UInt32 = 1 << 12
  private static let expiryBit: UInt32 = 1 << 13
  private static let externalBit: UInt32 = 1 << 14
  private static let valueLengthShift: UInt32 = 15
  private static let headerByteCount = 12
  /// Where the uppermost byte of the revision lies, and the mark in it.
  private static let markOffset = 11
  private static let usedBit: UInt8 = 0x80
  private static let externalByteCount = 8
  /// The largest a record can be: the longest key with an expiry and the longest value kept inside.
  static let maximumUnits = units(keyLength: Key.lengths.upperBound, valueLength: 32_767, hasExpiry: true)

  private let base: UnsafeMutableRawPointer

  @inline(__always)
  init(at base: UnsafeMutableRawPointer) { unsafe self.base = base }

  /// Asks for its first 128 bytes: header, key, and all of a small value. They may lie in three cache lines.
  @inline(__always)
  func prefetch() {
    unsafe Platform.prefetch(base)
    unsafe Platform.prefetch(base + 64)
    unsafe Platform.prefetch(base + 127)
  }

  /// The size of a record, in the arena's units of 8 bytes.
  @inline(__always)
  static func units(keyLength: Int, valueLength: Int, hasExpiry: Bool) -> UInt32 {
    let value = valueLength < ExternalValues.minimumByteCount ? valueLength : externalByteCount
    let byteCount = headerByteCount &+ (hasExpiry ? 8 : 0) &+ keyLength &+ value
    return UInt32(truncatingIfNeeded: (byteCount &+ 7) >> 3)
  }

  @inline(__always)
  private var header: UInt32 { unsafe base.load(as: UInt32.self) }

  @inline(__always)
  private var keyOffset: Int { Self.headerByteCount &+ (hasExpiry ? 8 : 0) }

  @inline(__always)
  private var valueOffset: Int { keyOffset &+ keyLength }

  @inline(__always)
  private var keyLength: Int { Int(header & 0xFFF) &+ 1 }

  /// Whether the arena counts the block as in use, as it must for every record that anything refers to.
  @inline(__always)
  var isInUse: Bool { header & Arena.inUse != 0 }

  @inline(__always)
  var kind: EntryKind { header & Self.listBit != 0 ? .list : .single }

  @inline(__always)
  var hasExpiry: Bool { header & Self.expiryBit != 0 }

  @inline(__always)
  var isExternal: Bool { header & Self.externalBit != 0 }

  @inline(__always)
  var revision: UInt64 {
    unsafe base.loadUnaligned(fromByteOffset: 4, as: UInt64.self) & ~(UInt64(Self.usedBit) << 56)
  }

  /// Whether the entry was used since the hand of `EntryMap+Limit` last passed. The only bit of a record that changes under a snapshot.
  var isUsed: Bool { unsafe base.load(fromByteOffset: Self.markOffset, as: UInt8.self) & Self.usedBit != 0 }

  @inline(__always)
  func setUsed(_ isUsed: Bool) {
    let byte = unsafe base.load(fromByteOffset: Self.markOffset, as: UInt8.self)
    unsafe base.storeBytes(
      of: isUsed ? byte | Self.usedBit : byte & ~Self.usedBit, toByteOffset: Self.markOffset, as: UInt8.self)
  }

  /// Absolute milliseconds; 0 for an entry that never expires.
  @inline(__always)
  var expiry: UInt64 {
    hasExpiry ? unsafe base.loadUnaligned(fromByteOffset: Self.headerByteCount, as: UInt64.self) : 0
  }

  @inline(__always)
  func isExpired(at now: UInt64) -> Bool { hasExpiry && expiry <= now }

  @inline(__always)
  var key: Key { unsafe Key(start: base + keyOffset, count: keyLength) }

  /// An external value.
  @inline(__always)
  var external: UnsafeMutableRawPointer {
    let bits = unsafe base.loadUnaligned(fromByteOffset: valueOffset, as: UInt.self)
    return unsafe UnsafeMutableRawPointer(bitPattern: bits).unsafelyUnwrapped
  }

  /// Puts another external value in the place of the one there is.
  func setExternal(_ external: UnsafeMutableRawPointer) {
    unsafe (base + valueOffset).storeBytes(of: UInt(bitPattern: external), as: UInt.self)
  }

  /// The length of a value that is not external.
  @inline(__always)
  private var valueLength: Int { Int((header & ~Arena.ownBits) >> Self.valueLengthShift) }

  @inline(__always)
  var valueByteCount: Int { isExternal ? unsafe ExternalValues.byteCount(of: external) : valueLength }

  @inline(__always)
  var units: UInt32 {
    let value = isExternal ? ExternalValues.minimumByteCount : valueLength
    return Self.units(keyLength: keyLength, valueLength: value, hasExpiry: hasExpiry)
  }

  /// All that the record takes, an external value included.
  var memoryBytes: Int { Int(units) * 8 + (isExternal ? unsafe ExternalValues.memoryBytes(of: external) : 0) }

  /// What readers see. Valid until the next change under the same lock.
  @inline(__always)
  var view: EntryView {
    let key = self.key
    let keyBytes = unsafe UnsafeRawBufferPointer(start: key.start, count: key.count)
    if isExternal {
      return unsafe EntryView(kind: kind, revision: revision, expiry: expiry, key: keyBytes, external: external)
    }
    let value = unsafe UnsafeRawBufferPointer(start: base + valueOffset, count: valueLength)
    return unsafe EntryView(kind: kind, revision: revision, expiry: expiry, key: keyBytes, value: value)
  }
}

extension Record {
  /// Writes everything but the bytes of key and value; the arena's own bits stay as they are.
  @inline(__always)
  private func writeHeader(
    keyLength: Int, valueLength: Int, isExternal: Bool, kind: EntryKind, revision: UInt64, expiry: UInt64
  ) {
    var word = header & Arena.ownBits | UInt32(truncatingIfNeeded: keyLength &- 1)
    if kind == .list { word |= Self.listBit }
    if isExternal { word |= Self.externalBit }
    if !isExternal { word |= UInt32(truncatingIfNeeded: valueLength) << Self.valueLengthShift }
    if expiry != 0 { word |= Self.expiryBit }
    unsafe base.storeBytes(of: word, as: UInt32.self)
    unsafe base.storeBytes(of: revision, toByteOffset: 4, as: UInt64.self)
    if expiry != 0 { unsafe base.storeBytes(of: expiry, toByteOffset: Self.headerByteCount, as: UInt64.self) }
  }

  /// Fills a new block. `external` is the value, for one kept outside.
  @inline(__always)
  func initialize(
    key: Key, value: UnsafeRawBufferPointer, external: UnsafeMutableRawPointer?,
    kind: EntryKind, revision: UInt64, expiry: UInt64
  ) {
    let isExternal = unsafe external != nil
    let valueLength = value.count
    writeHeader(
      keyLength: key.count, valueLength: valueLength, isExternal: isExternal, kind: kind, revision: revision,
      expiry: expiry)
    unsafe (base + keyOffset).copyMemory(from: key.start, byteCount: key.count)
    unsafe writeValue(value, external: external)
  }

  /// Overwrites all but the key. The new record must take as many units as the old one, and have an expiry if it had.
  @inline(__always)
  func overwrite(
    value: UnsafeRawBufferPointer, external: UnsafeMutableRawPointer?,
    kind: EntryKind, revision: UInt64, expiry: UInt64
  ) {
    let isExternal = unsafe external != nil
    let valueLength = value.count
    writeHeader(
      keyLength: keyLength, valueLength: valueLength, isExternal: isExternal, kind: kind, revision: revision,
      expiry: expiry)
    unsafe writeValue(value, external: external)
  }

  @inline(__always)
  private func writeValue(_ value: UnsafeRawBufferPointer, external: UnsafeMutableRawPointer?) {
    let destination = unsafe base + valueOffset
    if let external = unsafe external {
      unsafe destination.storeBytes(of: UInt(bitPattern: external), as: UInt.self)
    } else if let bytes = value.baseAddress {
      unsafe destination.copyMemory(from: bytes, byteCount: value.count)
    }
  }
}
