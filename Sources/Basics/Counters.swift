import Synchronization

/// Counters that one thread at a time increments and that any thread may read.
///
/// An increment needs no lock, because there is no second writer; a reader may see a slightly older value. The type is
/// public, although this module isn't a product, because the compiler inlines only public declarations across modules.
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

/// A histogram of durations, with classes that double from a microsecond to eight seconds. One thread at a time
/// records; any thread may read.
@frozen
public struct DurationHistogram: Sendable {
  /// The first class contains durations below this power of two, in nanoseconds.
  @usableFromInline static var firstPower: Int { 10 }
  /// The number of classes. The last one contains all longer durations.
  public static var classCount: Int { 25 }
  /// The number of counters: the classes, and the sum of all durations.
  public static var counterCount: Int { classCount + 1 }

  @usableFromInline let counters: Counters
  @usableFromInline let start: Int

  public init() { self.init(Counters(count: Self.counterCount), from: 0) }

  /// Creates one of several histograms that share their counters.
  @inlinable @inline(__always)
  public init(_ counters: Counters, from start: Int) {
    self.counters = counters
    self.start = start
  }

  /// Records `count` equal durations.
  @inlinable @inline(__always)
  public func note(nanoseconds: UInt64, count: UInt64 = 1) {
    let bits = UInt64.bitWidth &- nanoseconds.leadingZeroBitCount
    counters.add(count, at: start &+ min(max(0, bits &- Self.firstPower), Self.classCount &- 1))
    counters.add(count &* nanoseconds, at: start &+ Self.classCount)
  }

  public subscript(index: Int) -> UInt64 { counters[start + index] }

  /// Returns the upper bound of a class, in nanoseconds, which the class doesn't contain; nil for the last class.
  public static func bound(_ index: Int) -> UInt64? { index == classCount - 1 ? nil : 1 << UInt64(index + firstPower) }

  public var sumNanoseconds: UInt64 { self[Self.classCount] }
}
