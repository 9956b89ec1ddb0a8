import Foundation

/// A value that one thread at a time may touch. Held for moments only, and never across an `await`.
///
/// The standard library's `Mutex` would be its like, but the thread sanitizer can't see the kernel's part in handing that one over, and
/// reports races that are none.
///
/// Safe because the value is touched under the lock only.
final class Locked<Value: Sendable>: @unchecked Sendable {
  private let lock = NSLock()
  private var value: Value

  init(_ value: Value) {
    self.value = value
  }

  /// Runs `body` with the value to itself. Don't call it from inside.
  func withLock<R>(_ body: (inout Value) throws -> R) rethrows -> R {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value)
  }
}
