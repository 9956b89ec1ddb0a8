import Platform

/// A value that only one thread at a time can access. Its lock is held briefly, and never across an `await`.
@usableFromInline package final class LockedValue<Value: Sendable>: Sendable {
  @usableFromInline let value: Lock<Value>

  @inlinable package init(_ value: Value) {
    self.value = Lock(value)
  }

  /// Runs `body` with exclusive access to the value. Must not be called from inside `body`.
  @inlinable package func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    value.lock()
    defer { value.unlock() }
    let pointer = unsafe value.lockedValue
    return try unsafe body(&pointer.pointee)
  }
}
