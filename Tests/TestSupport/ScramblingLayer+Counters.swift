import Platform
import Synchronization

extension ScramblingLayer {
  /// What the layers of a test have done, so that it can check that the inconvenient parts occurred.
  package final class Counters: Sendable {
    package enum Event: Int, CaseIterable, Sendable {
      case handshakes, inputBehindHandshakes, splitWrites, deliveriesWithRest, waitsToReadBeforeSending,
        waitsToWriteBeforeReceiving
      /// Streams whose end was announced by one side, and received by the other one.
      case ends
    }

    private let counts = Lock([Int](repeating: 0, count: Event.allCases.count))
    private let layers = Atomic<UInt64>(0)

    package init() {}

    package subscript(event: Event) -> Int { counts.withLock { $0[event.rawValue] } }

    func add(_ event: Event) { counts.withLock { $0[event.rawValue] += 1 } }
    func nextLayer() -> UInt64 { layers.wrappingAdd(1, ordering: .relaxed).newValue }
  }
}
