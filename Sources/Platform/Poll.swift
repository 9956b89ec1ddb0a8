import CLinux
import Glibc

/// A set of descriptors that are polled together: epoll(7). Any thread may add, change or remove descriptors; one
/// thread at a time waits.
package struct Poll: ~Copyable, Sendable {
  /// The epoll descriptor, which is itself readable while any descriptor of the set is ready.
  package let descriptor: Descriptor

  /// The events to report. Errors and hang-ups are always reported.
  package struct Interest: OptionSet, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package static let reading = Interest(rawValue: EPOLLIN.rawValue)
    package static let writing = Interest(rawValue: EPOLLOUT.rawValue)
    /// Edge-triggered: reports each change once, instead of for as long as it lasts, and also reports when the peer
    /// shuts down its sending side. `change` reports everything that is ready again.
    package static let edgeTriggered = Interest(rawValue: EPOLLET.rawValue | EPOLLRDHUP.rawValue)
  }

  /// A ready descriptor: its token, and what it is ready for.
  package struct Event {
    package let token: UInt64
    package let readable: Bool
    package let writable: Bool
    /// The peer is gone, or the descriptor has failed.
    package let hasHungUp: Bool
    /// The peer has shut down its sending side. Reported only with the interest `edgeTriggered`.
    package let hasEndedSending: Bool
  }

  package init() throws(SystemError) {
    descriptor = Descriptor(owning: try system("epoll_create1") { epoll_create1(Int32(EPOLL_CLOEXEC)) })
  }

  package func add(_ number: Int32, _ interest: Interest, token: UInt64) throws(SystemError) {
    try control(EPOLL_CTL_ADD, number, interest, token)
  }

  package func change(_ number: Int32, _ interest: Interest, token: UInt64) {
    do { try control(EPOLL_CTL_MOD, number, interest, token) } catch { preconditionFailure("\(error)") }
  }

  package func remove(_ number: Int32) {
    do { try control(EPOLL_CTL_DEL, number, [], 0) } catch { preconditionFailure("\(error)") }
  }

  private func control(_ operation: Int32, _ number: Int32, _ interest: Interest, _ token: UInt64) throws(SystemError) {
    var event = unsafe epoll_event()
    unsafe event.events = interest.rawValue
    unsafe event.data.u64 = token
    try system("epoll_ctl") { unsafe epoll_ctl(descriptor.number, operation, number, &event) }
  }

  /// Waits until a descriptor is ready, and fills `events`.
  /// - Parameter timeoutMilliseconds: The maximum time to wait; 0 doesn't wait, and −1 waits forever.
  /// - Returns: The number of events; 0 if the time was up or a signal arrived.
  @inline(__always)
  package func wait(timeoutMilliseconds: Int32, into events: inout Events) -> Int {
    waiter.wait(timeoutMilliseconds: timeoutMilliseconds, into: &events)
  }

  /// What waits for a set that another owner keeps open, and changes meanwhile.
  package var waiter: Waiter { Waiter(number: descriptor.number) }

  package struct Waiter: Sendable {
    fileprivate let number: Int32

    /// Waits as `Poll.wait` does. The set must be open.
    @inline(__always)
    package func wait(timeoutMilliseconds: Int32, into events: inout Events) -> Int {
      let count = unsafe epoll_wait(
        number, events.storage.baseAddress, Int32(events.storage.count), timeoutMilliseconds)
      precondition(count >= 0 || errno == EINTR, "epoll_wait failed")
      return max(0, Int(count))
    }
  }

  /// A buffer for the events of one wait.
  @safe
  package struct Events: ~Copyable {
    fileprivate let storage: UnsafeMutableBufferPointer<epoll_event>

    package init(capacity: Int) {
      unsafe storage = .allocate(capacity: capacity)
      unsafe storage.initialize(repeating: epoll_event())
    }

    deinit { unsafe storage.deallocate() }

    package subscript(index: Int) -> Event {
      @inline(__always)
      get {
        let ready = unsafe storage[index].events
        return unsafe Event(
          token: storage[index].data.u64,
          readable: ready & EPOLLIN.rawValue != 0,
          writable: ready & EPOLLOUT.rawValue != 0,
          hasHungUp: ready & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0,
          hasEndedSending: ready & EPOLLRDHUP.rawValue != 0)
      }
    }
  }
}

/// Wakes a thread that waits in a `Poll` from any other thread: eventfd(2).
package struct Wakeup: ~Copyable, Sendable {
  package let descriptor: Descriptor

  package init() throws(SystemError) {
    descriptor = Descriptor(owning: try system("eventfd") { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) })
  }

  /// Makes the descriptor readable until `clear`.
  package func signal() {
    // The call fails only if the counter is full, and then the descriptor is readable already.
    _ = eventfd_write(descriptor.number, 1)
  }

  package func clear() {
    var count: eventfd_t = 0
    _ = unsafe eventfd_read(descriptor.number, &count)
  }
}
