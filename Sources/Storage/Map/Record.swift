import Platform

/// An entry, in place in the arena.
///
///     0   u32   key length - 1 (12 bits), kind (1), has expiry (1), external (1), value length (15), arena's bits (2)
///     4   u64   revision; its top bit is the reference bit, in stores with a memory limit, and the next one says
///               whether the value is known to be an I-JSON object
///     12  u64   expiry in milliseconds, if the entry has one
///     ..        key
///     ..        value, or the address of an external one among the `ExternalValues`
///
/// A key of 16 bytes and a value of 100 make a record of 128 bytes, with nothing lost to rounding. A record is read and
/// written only under its store's lock, and is valid until its block is freed.
@safe
struct Record {
  private static let listBit: UInt32 = 1 << 12
  private static let expiryBit: UInt32 = 1 << 13
  private static let externalBit: UInt32 = 1 << 14
  private static let valueLengthShift: UInt32 = 15
  private static let headerByteCount = 12
  /// The offset of the revision's top byte, and what is in it that isn't part of the revision.
  private static let flagsOffset = 11
  private static let referenceBit: UInt8 = 0x80
  private static let objectBit: UInt8 = 0x40
  private static let flags = UInt64(referenceBit | objectBit) << 56
  private static let externalByteCount = 8
  /// The maximum size of a record: the longest key with an expiry and the longest value that isn't external.
  static let maxUnits = units(keyLength: Key.lengths.upperBound, valueLength: 32_767, hasExpiry: true)

  private let base: UnsafeMutableRawPointer

  @inline(__always)
  init(at base: UnsafeMutableRawPointer) { unsafe self.base = base }

  /// - Parameter key: Where the key of the record is.
  @inline(__always)
  init(ofKeyAt key: UnsafeRawPointer, hasExpiry: Bool) {
    unsafe base = UnsafeMutableRawPointer(mutating: key - (Self.headerByteCount + (hasExpiry ? 8 : 0)))
  }

  /// Prefetches the first 128 bytes: header, key, and all of a small value. They may lie in three cache lines.
  @inline(__always)
  func prefetch() {
    unsafe Platform.prefetch(base)
    unsafe Platform.prefetch(base + 64)
    unsafe Platform.prefetch(base + 127)
  }

  /// Returns the size of a record, in the arena's units of 8 bytes.
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

  /// Whether the record's block is allocated, as it must be if anything refers to the record.
  @inline(__always)
  var isAllocated: Bool { header & Arena.inUse != 0 }

  @inline(__always)
  var kind: EntryKind { header & Self.listBit != 0 ? .list : .single }

  @inline(__always)
  var hasExpiry: Bool { header & Self.expiryBit != 0 }

  @inline(__always)
  var isExternal: Bool { header & Self.externalBit != 0 }

  @inline(__always)
  var revision: UInt64 {
    unsafe base.loadUnaligned(fromByteOffset: 4, as: UInt64.self) & ~Self.flags
  }

  /// The reference bit: whether the entry was used since the CLOCK hand of `EntryMap+Eviction.swift` last passed. The
  /// flags are the only bits of a record that change under a snapshot.
  var isReferenced: Bool { hasFlag(Self.referenceBit) }

  @inline(__always)
  func setReferenced(_ isReferenced: Bool) { setFlag(Self.referenceBit, isReferenced) }

  /// Whether the value is known to be an I-JSON object.
  @inline(__always)
  var isKnownObject: Bool { hasFlag(Self.objectBit) }

  func setKnownObject() { setFlag(Self.objectBit, true) }

  @inline(__always)
  private func hasFlag(_ flag: UInt8) -> Bool {
    unsafe base.load(fromByteOffset: Self.flagsOffset, as: UInt8.self) & flag != 0
  }

  @inline(__always)
  private func setFlag(_ flag: UInt8, _ isSet: Bool) {
    let byte = unsafe base.load(fromByteOffset: Self.flagsOffset, as: UInt8.self)
    unsafe base.storeBytes(of: isSet ? byte | flag : byte & ~flag, toByteOffset: Self.flagsOffset, as: UInt8.self)
  }

  /// The time of the map's clock when the entry expires, in milliseconds; 0 for never.
  @inline(__always)
  var expiry: UInt64 {
    hasExpiry ? unsafe base.loadUnaligned(fromByteOffset: Self.headerByteCount, as: UInt64.self) : 0
  }

  @inline(__always)
  func isExpired(at now: UInt64) -> Bool { hasExpiry && expiry <= now }

  @inline(__always)
  var key: Key { unsafe Key(start: base + keyOffset, count: keyLength) }

  /// The address of an external value.
  @inline(__always)
  var external: UnsafeMutableRawPointer {
    let bits = unsafe base.loadUnaligned(fromByteOffset: valueOffset, as: UInt.self)
    return unsafe UnsafeMutableRawPointer(bitPattern: bits).unsafelyUnwrapped
  }

  /// Replaces an external value with another one.
  func setExternal(_ external: UnsafeMutableRawPointer) {
    unsafe (base + valueOffset).storeBytes(of: UInt(bitPattern: external), as: UInt.self)
  }

  /// The length of a value that isn't external.
  @inline(__always)
  private var valueLength: Int { Int((header & ~Arena.ownBits) >> Self.valueLengthShift) }

  @inline(__always)
  var valueByteCount: Int { isExternal ? unsafe ExternalValues.byteCount(of: external) : valueLength }

  @inline(__always)
  var units: UInt32 {
    let value = isExternal ? ExternalValues.minimumByteCount : valueLength
    return Self.units(keyLength: keyLength, valueLength: value, hasExpiry: hasExpiry)
  }

  /// The memory of the record, including an external value.
  var memoryBytes: Int { Int(units) * 8 + (isExternal ? unsafe ExternalValues.memoryBytes(of: external) : 0) }

  /// The entry as readers see it. Valid until the map's next change.
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
  /// Writes everything except the bytes of key and value. Keeps the arena's bits.
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
    unsafe base.storeBytes(of: revision & ~Self.flags, toByteOffset: 4, as: UInt64.self)
    if expiry != 0 { unsafe base.storeBytes(of: expiry, toByteOffset: Self.headerByteCount, as: UInt64.self) }
  }

  /// Initializes a new block.
  /// - Parameter external: The address of an external value; nil if the record contains the value.
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

  /// Overwrites everything except the key. The new record must have as many units as the old one, and an expiry if the
  /// old one had.
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

/// The records of a map, in the order of their keys.
struct Records: OrderedBlocks {
  private let arena: Arena.View

  @inline(__always)
  fileprivate init(_ arena: Arena.View) { self.arena = arena }

  @inline(__always)
  func record(_ handle: UInt32) -> Record { unsafe Record(at: arena.address(handle)) }

  @inline(__always)
  func key(of handle: UInt32) -> Key { record(handle).key }

  @inline(__always)
  func precedes(_ record: UInt32, _ key: Key, _ bound: Key.Bound) -> Bool { self.key(of: record).precedes(key, bound) }

  @inline(__always)
  func isAllocated(_ record: UInt32) -> Bool { self.record(record).isAllocated }
}

extension Arena {
  /// The blocks as records, until the arena's next change.
  @inline(__always)
  var records: Records { Records(view) }
}
