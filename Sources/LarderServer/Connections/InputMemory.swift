import Storage
import Synchronization

/// Why there is no memory for more of a connection's input.
enum InputShortage: Error {
  /// The incomplete requests of all clients take as much as they may.
  case limit
  /// The system has no memory.
  case system

  /// The reason that the client gets.
  var reason: String {
    switch self {
    case .limit: "the server has too many incomplete requests, and this client has the most"
    case .system: "the server can't allocate more memory"
    }
  }
}

/// The memory of a connection's input, which is taken from what all connections may have before it is allocated.
///
/// What connections usually need is only counted. A connection that needs more, or that needs something when much is in
/// use, has a `Share`, which it may have to give up to a client that has less.
///
/// Owned by a `ConnectionInput`.
struct InputMemory: ~Copyable {
  private let totals: BufferTotals
  private let sharer: ConnectionSharer
  private let onRevocation: @Sendable () -> Void
  private(set) var byteCount = 0
  /// nil while the memory is only counted.
  private var share: Share?

  /// The maximum that is only counted, in bytes: two reads of the socket.
  private static let maxCountedBytes = 2 * ReadBatch.maxInputBytes

  /// - Parameter onRevocation: Called by any thread when another client has got the memory, which must be released soon.
  init(_ totals: BufferTotals, _ sharer: ConnectionSharer, onRevocation: @escaping @Sendable () -> Void) {
    self.totals = totals
    self.sharer = sharer
    self.onRevocation = onRevocation
  }

  deinit {
    totals.addInput(-byteCount)
    if let share { share.release() } else { totals.releaseCountedInput(byteCount) }
  }

  /// Whether another client has got the memory.
  var isRevoked: Bool { share?.isRevoked ?? false }

  /// Takes more. Whether that is much compared to others is judged without what there is, which it replaces.
  /// - Parameter revoking: Whether other clients may lose something for it.
  mutating func grow(by count: Int, revoking: Bool = true) throws(InputShortage) {
    if count <= 0 { return }
    if let share {
      guard share.grow(by: count, replacing: byteCount, limit: totals.maxSharedInput, revoking: revoking) else {
        throw .limit
      }
    } else if byteCount + count > Self.maxCountedBytes || !totals.countInput(count) {
      let share = totals.inputs.emptyShare(for: sharer.current, onRevocation: onRevocation)
      guard
        share.grow(by: byteCount + count, replacing: byteCount, limit: totals.maxSharedInput, revoking: revoking)
      else { throw .limit }
      totals.releaseCountedInput(byteCount)
      self.share = share
    }
    byteCount += count
    totals.addInput(count)
  }

  /// Gives back all memory beyond `count` bytes.
  mutating func shrink(to count: Int) {
    let excess = byteCount - count
    if excess <= 0 { return }
    byteCount = count
    totals.addInput(-excess)
    guard let share else { return totals.releaseCountedInput(excess) }
    if count > 0 { return share.shrink(by: excess) }
    share.release()
    self.share = nil
  }
}
