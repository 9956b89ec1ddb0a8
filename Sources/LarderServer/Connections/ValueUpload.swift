import Wire

/// A value that a client uploads in parts: `Protocol/wire.md` §6.13. No store has it yet.
///
/// Owned by a connection, and gone with it.
final class ValueUpload {
  let number: UInt64
  private var value = ByteBuffer()
  private let totals: BufferTotals
  /// When the last part arrived, in milliseconds.
  private(set) var lastPart: UInt64

  /// The maximum number of uploads of one connection.
  static let maxCount = 64

  /// - Parameter number: Drawn at random, so that the number of an upload on another connection is unknown on this one.
  init(_ totals: BufferTotals, number: UInt64 = .random(in: .min ... .max), now: UInt64) {
    self.totals = totals
    self.number = number
    lastPart = now
  }

  deinit { totals.uploadDidChange(by: -value.capacity) }

  var byteCount: Int { value.count }

  /// The bytes that have arrived. Valid until the next part.
  var bytes: UnsafeRawBufferPointer { unsafe value.bytes }

  /// Adds a part at the end.
  /// - Returns: False, with nothing added, if the uploads of all clients take too much memory, or the system has none.
  func append(_ part: RawSpan, now: UInt64) -> Bool {
    lastPart = now
    guard totals.mayUpload(part.byteCount) else { return false }
    let capacity = value.capacity
    guard value.tryReserve(part.byteCount) else { return false }
    totals.uploadDidChange(by: value.capacity - capacity)
    value.append(part)
    return true
  }
}
