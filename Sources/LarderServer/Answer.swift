import Storage

/// An answer of several frames that is not finished: `Protocol/wire.md` §5. What it has still to send, from which snapshot, and its credit.
///
/// Owned by its connection. Whoever drops one ends its snapshot, or its watch, with `end`.
struct Answer {
  let id: UInt32
  let store: Store
  /// Nil for a watch.
  let snapshot: Snapshot?
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
    /// The changes of the store, without an end.
    case changes(Watch)

    /// How many keys it keeps in memory.
    var keyCount: Int {
      switch self {
      case .scan, .changes: 0
      case .entries(let handles, _): handles.count
      }
    }

    var isEmpty: Bool {
      switch self {
      case .scan(let ranks, _, _): ranks.isEmpty
      case .entries(let handles, let next): next == handles.count
      case .changes: false
      }
    }
  }

  private var watch: Watch? { if case .changes(let watch) = rest { watch } else { nil } }
  var isWatch: Bool { watch != nil }
  /// Whether a frame can be made now.
  var isReady: Bool { credit > 0 && watch?.isCaughtUp != true }
  /// Whether it is a watch that has told of every change there is.
  var isAtEnd: Bool { watch?.isAtEnd == true }

  /// Has a watch look for changes.
  mutating func wake() {
    guard case .changes(var watch) = rest else { return }
    watch.isCaughtUp = false
    rest = .changes(watch)
  }

  /// Bytes of a frame's body, past which a new frame begins.
  static let frameBytes = 65_536
  /// The most credit that an answer can have.
  static let maxCredit = Int(Int32.max)

  func end() {
    store.access { map in
      if let snapshot { map.end(snapshot) } else { map.endWatch() }
    }
  }
}
