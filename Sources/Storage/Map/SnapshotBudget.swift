import Synchronization

/// What all stores of a server may use together.
package struct StoreBudgets: Sendable {
  package let snapshots: SnapshotBudget
  package let memory: MemoryBudget

  package init(snapshots: SnapshotBudget = SnapshotBudget(), memory: MemoryBudget = MemoryBudget()) {
    self.snapshots = snapshots
    self.memory = memory
  }
}

/// What the snapshots of all stores may keep in memory: records, nodes and keys that only they see. Used by any thread.
package final class SnapshotBudget: Sendable {
  private let limit: Atomic<Int>
  private let used = Atomic(0)

  /// - Parameter limit: In bytes.
  package init(limit: Int = .max) { self.limit = Atomic(limit) }

  package func setLimit(_ byteCount: Int) { limit.store(byteCount, ordering: .relaxed) }

  fileprivate func add(_ byteCount: Int) { used.add(byteCount, ordering: .relaxed) }
  fileprivate var isExceeded: Bool { used.load(ordering: .relaxed) > limit.load(ordering: .relaxed) }
}

/// A map's share of a `SnapshotBudget`. Owned by one `EntryMap` and used under its store's lock.
struct SnapshotShare: ~Copyable {
  private let budget: SnapshotBudget
  private var byteCount = 0

  init(_ budget: SnapshotBudget) { self.budget = budget }

  deinit { budget.add(-byteCount) }

  /// Whether all maps together exceed the budget.
  var isExceeded: Bool { budget.isExceeded }

  /// Sets what the snapshots of the map keep.
  mutating func set(_ byteCount: Int) {
    guard byteCount != self.byteCount else { return }
    budget.add(byteCount - self.byteCount)
    self.byteCount = byteCount
  }
}
