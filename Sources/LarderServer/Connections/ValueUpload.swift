import Wire

/// A value that a client uploads in parts: `Protocol/wire.md` §6.13. No store has it yet.
///
/// Owned by a connection, and gone with it.
final class ValueUpload {
  let number: UInt64
  private var value = ByteBuffer()
  private let totals: BufferTotals
  /// Its memory, as a part of what all uploads may take.
  private let share: Share
  private var accountedBytes = 0
  /// When it began, and when the last part with any bytes arrived, in milliseconds.
  private let began: UInt64
  private var lastPart: UInt64

  /// The maximum number of uploads of one connection.
  static let maxCount = 64

  /// - Parameters:
  ///   - number: Drawn at random, so that the number of an upload on another connection is unknown on this one.
  ///   - onRevocation: Called by any thread when other clients need its memory, so that it must be discarded soon.
  init(
    _ totals: BufferTotals, for sharer: Sharer, number: UInt64 = .random(in: .min ... .max), now: UInt64,
    onRevocation: @escaping @Sendable () -> Void
  ) {
    self.totals = totals
    share = totals.uploads.emptyShare(for: sharer, onRevocation: onRevocation)
    self.number = number
    began = now
    lastPart = now
  }

  deinit {
    share.release()
    totals.addInput(-accountedBytes)
  }

  var byteCount: Int { value.count }

  /// The bytes that have arrived. Valid until the next part.
  var bytes: UnsafeRawBufferPointer { unsafe value.bytes }

  /// Whether other clients have got its memory.
  var isRevoked: Bool { share.isRevoked }

  /// When it is discarded unless something happens, in milliseconds.
  func deadline(_ limits: borrowing ServerLimits) -> UInt64 {
    min(lastPart + limits.frameTime.wholeMilliseconds, began + limits.uploadTime.wholeMilliseconds)
  }

  /// Adds a part at the end.
  /// - Returns: False, with nothing added, if the uploads of all clients take too much memory, and no other client takes
  ///   more than this one, or the system has none.
  func append(_ part: RawSpan, now: UInt64) -> Bool {
    guard !part.isEmpty else { return true }
    let capacity = value.capacity(reserving: part.byteCount)
    if capacity != value.capacity {
      // Until the contents have been moved, both are allocated.
      let previous = value.capacity
      guard share.grow(by: capacity, replacing: previous, limit: totals.maxUploadBytes) else { return false }
      let isReserved = value.tryReserve(part.byteCount)
      share.shrink(by: isReserved ? previous : capacity)
      account()
      guard isReserved else { return false }
    }
    value.append(part)
    lastPart = now
    return true
  }

  private func account() {
    totals.addInput(value.capacity - accountedBytes)
    accountedBytes = value.capacity
  }
}
