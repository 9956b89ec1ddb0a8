import Dispatch
import Glibc
import Platform
import Synchronization

/// The signals that control the process, in order: SIGTERM, SIGINT, SIGHUP. None is lost.
///
/// All threads block these signals, and a thread of the queue's own waits for them. Therefore the queue must be created
/// before any other thread.
final class SignalQueue: Sendable {
  private static let numbers = [SIGTERM, SIGINT, SIGHUP]

  private let available = DispatchSemaphore(value: 0)
  private let pending = Lock<[Int32]>([])
  /// A Boolean value that indicates whether SIGTERM and SIGINT end the process at once instead of being queued.
  private let terminatesAtOnce = Atomic<Bool>(true)

  init() {
    var signals = Self.signals
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    DispatchQueue(label: "larder.signals").async { self.receive() }
  }

  /// Sets whether SIGTERM and SIGINT end the process at once. Initially they do.
  func setTerminatesAtOnce(_ value: Bool) {
    terminatesAtOnce.store(value, ordering: .sequentiallyConsistent)
  }

  /// Removes and returns the next signal, waiting for it if necessary.
  func next() -> Int32 {
    available.wait()
    return pending.withLock { $0.removeFirst() }
  }

  private func receive() {
    var signals = Self.signals
    while true {
      var number: Int32 = 0
      guard unsafe sigwait(&signals, &number) == 0 else { continue }
      if number != SIGHUP, terminatesAtOnce.load(ordering: .sequentiallyConsistent) {
        signal(number, SIG_DFL)
        unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
      }
      let received = number
      pending.withLock { $0.append(received) }
      available.signal()
    }
  }

  private static var signals: sigset_t {
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    for number in numbers { unsafe sigaddset(&signals, number) }
    return signals
  }
}
