import Foundation

/// A value that only one thread at a time can access. Its lock is held briefly, and never across an `await`.
///
/// The standard library's `Mutex` would do the same. But the thread sanitizer can't see the kernel's part in handing a
/// `Mutex` over, and reports races that don't exist.
///
/// Safe because the value is accessed under the lock only.
@usableFromInline package final class LockedValue<Value: Sendable>: @unchecked Sendable {
  @usableFromInline let lock = NSLock()
  @usableFromInline var value: Value

  @inlinable package init(_ value: Value) {
    self.value = value
  }

  /// Runs `body` with exclusive access to the value. Must not be called from inside `body`.
  @inlinable package func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
