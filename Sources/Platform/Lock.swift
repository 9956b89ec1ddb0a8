import Glibc

/// A value that one thread at a time may touch, behind a pthread mutex that spins shortly before it sleeps.
///
/// The standard library's `Mutex` would be its like, but the thread sanitizer can't see the kernel's part in handing that one over, and
/// reports races that are none. It is public, although this module is no product, because the compiler specialises across modules only
/// what is.
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
    // PTHREAD_MUTEX_ADAPTIVE_NP, which <pthread.h> has only under _GNU_SOURCE.
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

  /// Runs `body` with the value to itself. Don't call it from inside.
  @inlinable
  public borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try unsafe body(&value.pointee)
  }

  /// Takes the lock, for a hold that no closure can span. Whoever takes it lets go of it, on the same thread.
  @inlinable
  public borrowing func acquire() { unsafe pthread_mutex_lock(mutex) }

  @inlinable
  public borrowing func release() { unsafe pthread_mutex_unlock(mutex) }

  /// The value, for whoever has acquired the lock.
  @unsafe @inlinable
  public var held: UnsafeMutablePointer<Value> { unsafe value }
}

// Safe because the value is touched under the mutex only.
extension Lock: @unchecked Sendable where Value: ~Copyable {}
