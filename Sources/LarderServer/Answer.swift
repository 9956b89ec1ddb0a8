import Storage

/// An answer of several frames that is not finished: `Protocol/wire.md` §5. What it has still to send, from which snapshot, and its credit.
///
/// Owned by its connection. Whoever drops one ends its snapshot with `end`.
struct Answer {
  let id: UInt32
  let store: Store
  let snapshot: Snapshot
  var rest: Rest
  /// How many bytes the client takes; nothing is sent while it is not above zero.
  var credit: Int
  /// Since when nothing was sent, in milliseconds.
  var waitingSince: UInt64

  enum Rest {
    /// The entries of these ranks, from the last one backwards when `reverse`.
    case scan(ranks: Range<Int>, reverse: Bool, keysOnly: Bool)
    /// The entries at these handles, 0 for absent ones, from `next` on.
    case entries([UInt32], next: Int)

    /// How many keys it keeps in memory.
    var keyCount: Int {
      switch self {
      case .scan: 0
      case .entries(let handles, _): handles.count
      }
    }

    var isEmpty: Bool {
      switch self {
      case .scan(let ranks, _, _): ranks.isEmpty
      case .entries(let handles, let next): next == handles.count
      }
    }
  }

  /// Bytes of a frame's body, past which a new frame begins.
  static let frameBytes = 65_536
  /// The most credit that an answer can have.
  static let mostCredit = Int(Int32.max)

  func end() {
    store.access { $0.end(snapshot) }
  }
}
