import Foundation

/// A value that one thread at a time may touch. Held for moments only, and never across an `await`.
///
/// The standard library's `Mutex` would be its like, but the thread sanitizer can't see the kernel's part in handing that one over, and
/// reports races that are none.
///
/// Safe because the value is touched under the lock only.
@usableFromInline final class Locked<Value: Sendable>: @unchecked Sendable {
  @usableFromInline let lock = NSLock()
  @usableFromInline var value: Value

  @inlinable init(_ value: Value) {
    self.value = value
  }

  /// Runs `body` with the value to itself. Don't call it from inside.
  @inlinable func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
