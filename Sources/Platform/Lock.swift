import Glibc

/// A value that one thread at a time may access, protected by a pthread mutex that spins briefly before it sleeps.
///
/// The standard library's `Mutex` would do, but the thread sanitizer can't see the kernel's part in its handover and
/// reports false races. The type is public, although this module isn't a product, because the compiler specializes only
/// public declarations across modules.
@safe
public struct Lock<Value: ~Copyable>: ~Copyable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline let value: UnsafeMutablePointer<Value>

  public init(_ initialValue: consuming sending Value) {
    unsafe mutex = .allocate(capacity: 1)
    unsafe value = .allocate(capacity: 1)
    unsafe value.initialize(to: initialValue)
    var attributes = pthread_mutexattr_t()
    unsafe pthread_mutexattr_init(&attributes)
    // PTHREAD_MUTEX_ADAPTIVE_NP, which <pthread.h> defines only under _GNU_SOURCE.
    unsafe pthread_mutexattr_settype(&attributes, 3)
    unsafe pthread_mutex_init(mutex, &attributes)
    unsafe pthread_mutexattr_destroy(&attributes)
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
    unsafe value.deinitialize(count: 1)
    unsafe value.deallocate()
  }

  /// Runs `body` with exclusive access to the value. `body` must not lock again.
  @inlinable
  public borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try unsafe body(&value.pointee)
  }

  /// Locks, for a critical section that can't be a closure. Balance it with `unlock` on the same thread.
  @inlinable
  public borrowing func lock() { unsafe pthread_mutex_lock(mutex) }

  /// Locks as `lock` does, unless another thread has locked.
  /// - Returns: Whether this thread has locked.
  @inlinable
  public borrowing func tryLock() -> Bool { unsafe pthread_mutex_trylock(mutex) == 0 }

  @inlinable
  public borrowing func unlock() { unsafe pthread_mutex_unlock(mutex) }

  /// The value, for code that has locked it. Assign the address to a constant and change the value through that: the
  /// thread sanitizer takes a change in the same expression for one of the lock.
  @unsafe @inlinable
  public var lockedValue: UnsafeMutablePointer<Value> { unsafe value }
}

// Safe because the value is accessed only under the mutex.
extension Lock: @unchecked Sendable where Value: ~Copyable {}
