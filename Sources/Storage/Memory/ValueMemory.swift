import Glibc
import Synchronization

/// The memory of a large value, which a store shares with the connections that received it or still send it.
///
/// It comes from the heap, because touching new pages for each value would take most of the time of a large put.
///
/// Safe because it is written only by its first owner, before it is shared, and everything else that changes is changed
/// by the one map that holds it, under the lock of the map's store.
@safe
package final class ValueMemory: @unchecked Sendable {
  /// The memory that it takes beyond its bytes: for the object, and for what the heap adds.
  static let overheadByteCount = 96

  /// The total size of memory that no map holds any more, in bytes.
  private static let released = Atomic<Int>(0)
  package static var releasedByteCount: Int { released.load(ordering: .relaxed) }

  package let byteCount: Int
  private let base: UnsafeMutableRawPointer
  /// What was taken for it, and from where.
  private var charge: (budget: MemoryBudget, byteCount: Int)?
  private var isReleased = false

  /// Creates uninitialized memory. Returns nil if the system has none.
  package init?(byteCount: Int) {
    guard let base = unsafe malloc(byteCount) else { return nil }
    self.byteCount = byteCount
    unsafe self.base = base
  }

  deinit {
    if let charge { charge.budget.count(-charge.byteCount) }
    if isReleased { Self.released.subtract(byteCount, ordering: .relaxed) }
    unsafe free(base)
  }

  /// All of the bytes, for the first owner.
  @unsafe
  package var room: UnsafeMutableRawBufferPointer {
    unsafe UnsafeMutableRawBufferPointer(start: base, count: byteCount)
  }

  /// Some of the bytes. They are valid as long as the memory is alive.
  @unsafe
  package func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(rebasing: room[range])
  }

  /// Returns the offset of bytes in this memory; nil if they are elsewhere.
  package func offset(of bytes: UnsafeRawBufferPointer) -> Int? {
    guard let start = bytes.baseAddress, unsafe start >= UnsafeRawPointer(base), bytes.count <= byteCount else {
      return nil
    }
    let offset = unsafe start - UnsafeRawPointer(base)
    return offset <= byteCount - bytes.count ? offset : nil
  }

  // MARK: The map that holds it

  /// Notes that the map holds it, and what was taken for that from a budget, which gets it back when the memory is
  /// freed. If a put has failed, the map may have held it before.
  func mapDidRetain(_ byteCount: Int, from budget: MemoryBudget?) {
    if let charge { charge.budget.count(-charge.byteCount) }
    charge = budget.map { ($0, byteCount) }
    if isReleased { Self.released.subtract(self.byteCount, ordering: .relaxed) }
    isReleased = false
  }

  /// Notes that the map does not hold it any more.
  func mapWillRelease() {
    isReleased = true
    Self.released.add(byteCount, ordering: .relaxed)
  }
}

/// A large value in memory, which stays as it is even if the entry changes.
package struct LargeValue: Sendable {
  package let memory: ValueMemory
  package let range: Range<Int>

  package var byteCount: Int { range.count }

  /// The value. Valid as long as its memory is alive.
  @unsafe
  package var bytes: UnsafeRawBufferPointer { unsafe memory.bytes(range) }
}
