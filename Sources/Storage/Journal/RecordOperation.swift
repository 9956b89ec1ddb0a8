/// One operation of a record, where it lies: as `CommitBuffer` has it, or a log's mark.
///
/// Safe because every length is compared with what is there before it is used; the bytes must outlive it.
@safe
struct RecordOperation {
  /// A `CommitBuffer.Kind`, or `SyncMark.kind`.
  let kind: UInt8
  let isSeparated: Bool
  /// Of a value apart; 0 for others.
  let valueChecksum: UInt32
  /// In milliseconds since 1970; 0 for never.
  let expiry: UInt64
  let key: UnsafeRawBufferPointer
  /// Empty for a value apart that was left out.
  let value: UnsafeRawBufferPointer
  let valueByteCount: Int
  /// Where the next one begins, from the record's beginning on.
  let end: Int

  var isRemoval: Bool { kind == CommitBuffer.Kind.delete.rawValue || kind == CommitBuffer.Kind.deleteAll.rawValue }

  /// Nil unless it is well formed and ends within the record.
  /// - Parameter isSparse: whether the record's values apart are left out.
  @inline(__always)
  init?(in record: UnsafeRawBufferPointer, at start: Int, isSparse: Bool = false) {
    var place = start &+ CommitBuffer.operationHeaderByteCount
    guard place <= record.count else { return nil }
    kind = unsafe record[start]
    let flags = unsafe record[start &+ 1]
    let keyCount = unsafe Int(record.integer(at: start &+ 2, as: UInt16.self))
    let valueCount = unsafe Int(record.integer(at: start &+ 4, as: UInt32.self))
    isSeparated = flags & CommitBuffer.Flag.separated != 0
    let expires = flags & CommitBuffer.Flag.expires != 0
    let extra = (expires ? 8 : 0) &+ (isSeparated ? 4 : 0)
    let presentCount = isSparse && isSeparated ? 0 : valueCount
    guard place &+ extra &+ keyCount &+ presentCount <= record.count, flags <= 3 else { return nil }
    switch kind {
    case 1, 2:
      guard Key.lengths.contains(keyCount), valueCount <= Int32.max else { return nil }
      guard isSeparated == (valueCount >= CommitBuffer.separatedByteCount) else { return nil }
    case 3: guard Key.lengths.contains(keyCount), valueCount == 0, flags == 0 else { return nil }
    case 4: guard keyCount == 0, valueCount == 0, flags == 0 else { return nil }
    case SyncMark.kind:
      guard record.count == SyncMark.byteCount, keyCount == 0, valueCount == 16, flags == 0 else { return nil }
    default: return nil
    }
    expiry = expires ? unsafe record.integer(at: place, as: UInt64.self) : 0
    if expires { place &+= 8 }
    valueChecksum = isSeparated ? unsafe record.integer(at: place, as: UInt32.self) : 0
    if isSeparated { place &+= 4 }
    guard !expires || expiry != 0 else { return nil }
    unsafe key = UnsafeRawBufferPointer(start: record.baseAddress! + place, count: keyCount)
    place &+= keyCount
    unsafe value = UnsafeRawBufferPointer(start: record.baseAddress! + place, count: presentCount)
    valueByteCount = valueCount
    end = place &+ presentCount
  }
}
