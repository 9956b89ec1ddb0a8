import Dispatch
import Glibc
import Platform
import Synchronization

/// The signals that ask something of the process, one after the other: SIGTERM, SIGINT, SIGHUP. None is ever lost.
///
/// They are blocked in all threads, and a thread of the inbox's own waits for them. So one has to be made before there is any other thread.
final class SignalInbox: Sendable {
  private static let numbers = [SIGTERM, SIGINT, SIGHUP]

  private let arrived = DispatchSemaphore(value: 0)
  private let waiting = Lock<[Int32]>([])
  /// Whether SIGTERM and SIGINT end the process as they would by themselves, instead of being delivered.
  private let endsAtOnce = Atomic<Bool>(true)

  init() {
    var signals = Self.signals
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    DispatchQueue(label: "larder.signals").async { self.wait() }
  }

  /// Says whether SIGTERM and SIGINT are to end the process at once; in the beginning they are.
  func endAtOnce(_ endsAtOnce: Bool) {
    self.endsAtOnce.store(endsAtOnce, ordering: .sequentiallyConsistent)
  }

  /// The next signal. Blocks until one comes.
  func next() -> Int32 {
    arrived.wait()
    return waiting.withLock { $0.removeFirst() }
  }

  private func wait() {
    var signals = Self.signals
    while true {
      var number: Int32 = 0
      guard unsafe sigwait(&signals, &number) == 0 else { continue }
      if number != SIGHUP, endsAtOnce.load(ordering: .sequentiallyConsistent) {
        signal(number, SIG_DFL)
        unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
      }
      let taken = number
      waiting.withLock { $0.append(taken) }
      arrived.signal()
    }
  }

  private static var signals: sigset_t {
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    for number in numbers { unsafe sigaddset(&signals, number) }
    return signals
  }
}
