import Glibc

/// Calls the subscribers of futures, one after the other.
///
/// A subscriber often resolves another future, whose subscribers resolve others. If these calls were nested, a long
/// chain of futures would overflow the stack. So a thread that is already calling a subscriber puts further calls into
/// its queue, and makes them when that subscriber returns.
///
/// A queue belongs to one thread, and exists only while the thread calls subscribers.
final class Delivery {
  private var calls: [(() -> Void)?] = []
  /// The index of the next call.
  private var next = 0

  private init() {}

  /// Makes a call: immediately or, if this thread is already calling a subscriber, after the calls in its queue.
  static func perform(_ call: @escaping () -> Void) {
    if let delivery = current {
      delivery.calls.append(call)
      return
    }
    let delivery = Delivery()
    current = delivery
    defer { current = nil }
    call()
    delivery.finish()
  }

  /// Makes the calls that are in the queue of this thread, if there are any.
  static func finishPending() {
    current?.finish()
  }

  private func finish() {
    while next < calls.count {
      let call = calls[next]
      calls[next] = nil
      next += 1
      if next == calls.count {
        calls.removeAll(keepingCapacity: true)
        next = 0
      } else if next > 1_000, next > calls.count / 2 {
        calls.removeFirst(next)
        next = 0
      }
      call?()
    }
  }

  // MARK: - The thread's queue

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let status = unsafe pthread_key_create(&key, nil)
    precondition(status == 0, "the process has too many keys of thread-specific data")
    return key
  }()

  /// The queue of this thread; nil if the thread isn't calling a subscriber.
  ///
  /// Safe because `perform` keeps the queue alive from the moment it sets the property until it resets it, and no other
  /// thread sees the value.
  private static var current: Delivery? {
    get {
      unsafe pthread_getspecific(key).map { unsafe Unmanaged<Delivery>.fromOpaque($0).takeUnretainedValue() }
    }
    set {
      let status = unsafe pthread_setspecific(key, newValue.map { unsafe Unmanaged.passUnretained($0).toOpaque() })
      precondition(status == 0, "there is no memory for thread-specific data")
    }
  }
}
