/// One change of a store, where it lies in the feed: nothing is copied. Valid until the feed is next changed.
///
///     0   u64  revision                  16  u32  length of the value
///     8   u64  expiry, 0 for never       20  u16  length of the key
///                                        22  u8   kind, and a byte that is zero
@safe
package struct ChangeView {
  package enum Kind: UInt8, Sendable {
    case single = 1
    case list = 2
    case delete = 3
    case deleteAll = 4
  }

  static let headerByteCount = 24

  package let kind: Kind
  package let revision: UInt64
  /// When the entry that was written expires, on the clock of the map; 0 for never.
  package let expiry: UInt64
  package let key: UnsafeRawBufferPointer
  package let value: UnsafeRawBufferPointer

  /// What it takes in the feed.
  package var byteCount: Int { unsafe Self.headerByteCount + key.count + value.count }

  @unsafe
  init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    unsafe revision = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    unsafe expiry = bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
    let valueCount = unsafe Int(bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt32.self))
    let keyCount = unsafe Int(bytes.loadUnaligned(fromByteOffset: offset + 20, as: UInt16.self))
    unsafe kind = Kind(rawValue: bytes[offset + 22])!
    let start = offset + Self.headerByteCount
    unsafe key = UnsafeRawBufferPointer(rebasing: bytes[start..<start + keyCount])
    unsafe value = UnsafeRawBufferPointer(rebasing: bytes[start + keyCount..<start + keyCount + valueCount])
  }

  static func append(
    _ kind: Kind, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, expiry: UInt64, revision: UInt64,
    to bytes: inout [UInt8]
  ) {
    let lengths = UInt64(value.count) | UInt64(key.count) << 32 | UInt64(kind.rawValue) << 48
    unsafe withUnsafeBytes(of: (revision, expiry, lengths)) { unsafe bytes.append(contentsOf: $0) }
    unsafe bytes.append(contentsOf: key)
    unsafe bytes.append(contentsOf: value)
  }
}
