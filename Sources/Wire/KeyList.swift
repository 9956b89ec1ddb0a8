/// Steps through the key list of a request: `Protocol/wire.md` §4. Keys are places in the span that it was made with.
public struct KeyList {
  /// How many keys the list says it has.
  public let count: Int
  /// How many were not read yet.
  public var remaining: Int
  @usableFromInline var place: Int

  @inlinable
  public init?(_ body: RawSpan) {
    guard let count = body.integer(at: 0, as: UInt32.self) else { return nil }
    self.count = Int(count)
    remaining = Int(count)
    place = 4
  }

  /// Whether all keys were read and nothing stands behind them.
  @inlinable public func isComplete(_ body: RawSpan) -> Bool { remaining == 0 && place == body.byteCount }

  /// The next key's place, or nil at the end of the list or where it is malformed (`isComplete` tells which).
  @inlinable
  public mutating func next(_ body: RawSpan) -> Range<Int>? {
    guard remaining > 0, let size = body.integer(at: place, as: UInt16.self) else { return nil }
    let start = place &+ 2
    let end = start &+ Int(size)
    guard end <= body.byteCount else { return nil }
    place = end
    remaining &-= 1
    return unsafe Range(uncheckedBounds: (start, end))
  }
}

extension ByteBuffer {
  /// One key of a key list.
  @inlinable
  public mutating func appendListedKey(_ key: RawSpan) {
    precondition(key.byteCount <= Key.largest)
    append(UInt16(truncatingIfNeeded: key.byteCount))
    append(key)
  }
}
