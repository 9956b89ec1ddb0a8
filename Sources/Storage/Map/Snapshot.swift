/// A token for an unchanging view of a store, from `EntryMap.snapshot` until `EntryMap.end`.
///
/// It holds nothing by itself: what the view shows is kept by the map, and read under the store's lock.
package struct Snapshot: Hashable, Sendable {
  let epoch: UInt64
  /// How many entries the view has; their ranks are 0 to `count - 1`.
  package let count: Int
  /// The store's revision when the view was taken.
  package let revision: UInt64
}

/// What a map knows of a living snapshot, and what it keeps for it.
///
/// A record or node that leaves the live tree is kept by the newest snapshot that can see it. When that one ends, it
/// goes to the next older one if that can see it too, and is freed otherwise: nothing is kept for longer than it is
/// visible.
struct LiveSnapshot {
  let epoch: UInt64
  let root: UInt32
  let count: Int
  let revision: UInt64
  /// The map's count of changes, by which a second snapshot of the same state is told.
  let changeCount: UInt64
  /// How many tokens share it.
  var userCount = 1
  var records: [UInt32] = []
  var nodes: [UInt32] = []

  var memoryBytes: Int {
    MemoryLayout<LiveSnapshot>.stride + (records.capacity + nodes.capacity) * MemoryLayout<UInt32>.stride
  }
}
