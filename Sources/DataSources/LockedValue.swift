import Glibc

/// A value that only one thread at a time can access. Its lock is held briefly, and never across an `await`.
///
/// The standard library's `Mutex` would do the same. But the thread sanitizer can't see the kernel's part in handing a
/// `Mutex` over, and reports races that don't exist.
///
/// Safe because the value is accessed under the lock only.
@safe @usableFromInline package final class LockedValue<Value: Sendable>: @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline var value: Value

  @inlinable package init(_ value: Value) {
    self.value = value
    unsafe mutex = .allocate(capacity: 1)
    unsafe pthread_mutex_init(mutex, nil)
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  /// Runs `body` with exclusive access to the value. Must not be called from inside `body`.
  @inlinable package func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
