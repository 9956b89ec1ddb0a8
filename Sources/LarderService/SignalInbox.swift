import Dispatch
import Glibc
import Platform

/// The signals that ask something of the process, one after the other.
///
/// Safe because `sources` belongs to the thread that uses the inbox, and what the handlers touch is behind a lock.
final class SignalInbox: @unchecked Sendable {
  private let arrived = DispatchSemaphore(value: 0)
  private let waiting = Lock<[Int32]>([])
  private var sources: [Int32: any DispatchSourceSignal] = [:]

  /// Takes signals of that number from now on, where they would have ended the process.
  func take(_ number: Int32) {
    signal(number, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
    source.setEventHandler { [unowned self] in
      waiting.withLock { $0.append(number) }
      arrived.signal()
    }
    source.activate()
    sources[number] = source
  }

  /// Lets signals of that number end the process again.
  func letGo(_ number: Int32) {
    sources.removeValue(forKey: number)?.cancel()
    signal(number, SIG_DFL)
  }

  /// The next signal. Blocks until one comes.
  func next() -> Int32 {
    arrived.wait()
    return waiting.withLock { $0.removeFirst() }
  }
}
