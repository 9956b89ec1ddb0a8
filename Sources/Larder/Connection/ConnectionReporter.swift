import Platform
import Synchronization
import Wire

/// Reports the calls and the life of one connection to the client's observers.
///
/// A client without observers has none. The methods about connecting are called on the event loop.
final class ConnectionReporter: Sendable {
  private let observers: [any ClientObserver]
  private let connection: ClientConnection
  /// When the latest attempt to connect began, in nanoseconds.
  private let attemptTime = Atomic<UInt64>(0)
  /// Whether `connectionOpened` was reported, and the end was not.
  private let isOpen = Atomic<Bool>(false)

  /// Returns nil if there are no observers.
  init?(number: Int, address: Address, observers: [any ClientObserver]) {
    guard !observers.isEmpty else { return nil }
    self.observers = observers
    let (host, port): (String, Int?) =
      switch address {
      case .unix(let path): (path, nil)
      case .tcp(let host, let port), .tls(let host, let port): (host, Int(port))
      }
    connection = ClientConnection(number: number, address: address.description, host: host, port: port)
  }

  // MARK: Calls

  /// The names of the operations by their raw values, which are costly to make.
  private static let names = Dictionary(uniqueKeysWithValues: Wire.Operation.allCases.map { ($0, $0.name) })

  /// Reports that a call begins.
  func callBegan<Q: ServerRequest>(_ request: Q, store: StoreReference?) -> CallReport {
    let measure = request.measure
    let call = ClientCall(
      operation: Self.names[Q.operation] ?? Q.operation.name, store: store?.name, keyCount: measure.itemCount,
      requestBytes: measure.bodySize, connection: connection)
    return CallReport(observers.compactMap { $0.callBegan(call) })
  }

  // MARK: Connecting

  /// Records that an attempt to connect begins.
  func connectionRequested() { attemptTime.store(monotonicNanoseconds(), ordering: .relaxed) }

  func connectionOpened() {
    isOpen.store(true, ordering: .relaxed)
    let duration = Duration.nanoseconds(since: attemptTime.load(ordering: .relaxed))
    for observer in observers { observer.connectionOpened(connection, after: duration) }
  }

  /// Reports that the connection is lost, or that the attempt to connect has failed.
  func connectionFailed(_ reason: CloseReason, _ address: Address) {
    guard isOpen.exchange(false, ordering: .relaxed) else {
      let error = reason.connectError(to: address).error
      for observer in observers { observer.connectionFailed(connection, error: error) }
      return
    }
    let error = reason.error(from: address, wasSent: true)
    for observer in observers { observer.connectionClosed(connection, error: error) }
  }

  /// Reports that the client was closed.
  func clientClosed() {
    guard isOpen.exchange(false, ordering: .relaxed) else { return }
    for observer in observers { observer.connectionClosed(connection, error: nil) }
  }
}

/// A call whose beginning was reported.
struct CallReport {
  private let start = monotonicNanoseconds()
  private let end: [@Sendable (ClientCallResult) -> Void]
  private var retries = 0

  init(_ end: [@Sendable (ClientCallResult) -> Void]) { self.end = end }

  /// Records that the client repeats the request.
  mutating func countRetry() { retries += 1 }

  /// Reports that the call has ended.
  func callEnded(_ reply: CallResult) {
    var error: LarderError?
    if case .failed(let failure, _) = reply { error = failure }
    let result = ClientCallResult(
      duration: .nanoseconds(since: start), error: error, retries: retries, responseBytes: reply.size)
    for end in end { end(result) }
  }
}

extension Duration {
  fileprivate static func nanoseconds(since time: UInt64) -> Duration {
    .nanoseconds(Int64(clamping: monotonicNanoseconds() - time))
  }
}

extension CallResult {
  /// The number of bytes that the reply carries.
  fileprivate var size: Int {
    switch self {
    case .number: 8
    case .entry(_, _, _, let value): value.count
    case .body(let body, _): body.count
    case .empty, .notFound, .retry, .mustOpenStore, .failed: 0
    }
  }
}
