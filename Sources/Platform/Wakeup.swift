import CLinux
import Glibc

/// Wakes a thread that waits in a `Poll`, from any other thread: eventfd(2).
package struct Wakeup: ~Copyable, Sendable {
  package let descriptor: Descriptor

  package init() throws(SystemError) {
    descriptor = Descriptor(owning: try system("eventfd") { eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) })
  }

  /// Makes the descriptor readable until `clear`.
  package func signal() {
    // The only failure is a counter that is full, and then the descriptor is readable already.
    _ = eventfd_write(descriptor.number, 1)
  }

  package func clear() {
    var count: eventfd_t = 0
    _ = unsafe eventfd_read(descriptor.number, &count)
  }
}
