import Synchronization

/// Numbers that one thread at a time counts up, and that any thread may read meanwhile: it sees each as it was a moment ago.
///
/// Counting is an addition without a lock, for there is no second writer. Public, although this module is no product, because the compiler
/// inlines across modules only what is.
///
/// Safe because the memory lives as long as the object, indices are checked, and every access is atomic.
@safe
public final class Counters: @unchecked Sendable {
  @usableFromInline let values: UnsafeMutablePointer<Atomic<UInt64>>
  public let count: Int

  public init(count: Int) {
    self.count = count
    unsafe values = .allocate(capacity: count)
    for index in 0..<count { unsafe (values + index).initialize(to: Atomic(0)) }
  }

  deinit {
    unsafe values.deinitialize(count: count)
    unsafe values.deallocate()
  }

  @inlinable @inline(__always)
  public func add(_ amount: UInt64, at index: Int) {
    precondition(index >= 0 && index < count)
    let sum = unsafe values[index].load(ordering: .relaxed) &+ amount
    unsafe values[index].store(sum, ordering: .relaxed)
  }

  @inlinable
  public subscript(index: Int) -> UInt64 {
    precondition(index >= 0 && index < count)
    return unsafe values[index].load(ordering: .relaxed)
  }
}

/// How long things took: counts in classes that double, from a microsecond to eight seconds. One thread at a time notes, any reads.
@frozen
public struct DurationHistogram: Sendable {
  /// The first class goes up to this power of two of nanoseconds.
  @usableFromInline static var firstPower: Int { 10 }
  /// The last of them has what took longer than all others.
  public static var classCount: Int { 25 }
  /// The classes, and the sum of all times.
  public static var counterCount: Int { classCount + 1 }

  @usableFromInline let counters: Counters
  @usableFromInline let start: Int

  public init() { self.init(Counters(count: Self.counterCount), from: 0) }

  /// One of several that share their counters.
  @inlinable @inline(__always)
  public init(_ counters: Counters, from start: Int) {
    self.counters = counters
    self.start = start
  }

  /// Notes that `count` things took so long each.
  @inlinable @inline(__always)
  public func note(nanoseconds: UInt64, count: UInt64 = 1) {
    let bits = UInt64.bitWidth &- nanoseconds.leadingZeroBitCount
    counters.add(count, at: start &+ min(max(0, bits &- Self.firstPower), Self.classCount &- 1))
    counters.add(count &* nanoseconds, at: start &+ Self.classCount)
  }

  public subscript(index: Int) -> UInt64 { counters[start + index] }

  /// What the things of a class took less than, in nanoseconds; nil for the last one.
  public static func bound(_ index: Int) -> UInt64? { index == classCount - 1 ? nil : 1 << UInt64(index + firstPower) }

  public var sumNanoseconds: UInt64 { self[Self.classCount] }
}
