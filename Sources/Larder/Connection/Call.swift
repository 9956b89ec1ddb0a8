import Platform

/// The continuation of a suspended call.
///
/// Safe because the connection's state gives each caller to one thread, which resumes it once.
@safe
struct Caller: Sendable {
  private let continuation: UnsafeContinuation<CallResult, Never>

  private init(_ continuation: UnsafeContinuation<CallResult, Never>) {
    unsafe self.continuation = continuation
  }

  func resume(_ reply: CallResult) {
    unsafe continuation.resume(returning: reply)
  }

  /// Suspends the current task until the caller that `body` receives is resumed.
  @inline(__always)
  static func suspend(_ body: (Caller) -> Void) async -> CallResult {
    unsafe await withUnsafeContinuation { unsafe body(Caller($0)) }
  }
}

/// The deadline of a call, in milliseconds of the monotonic clock, with the latest reading of that clock.
struct CallDeadline: Sendable {
  /// The time when the clock was last read for the call. A call that is sent at once reads it only once.
  private(set) var now: UInt64
  /// The time when the call times out.
  let instant: UInt64

  /// The deadline of a call that begins now.
  /// - Parameter timeout: How long the call may take, in milliseconds; 0 for a call that times out at once.
  init(timeout: UInt64) {
    now = monotonicMilliseconds()
    // One more than the sum, because part of the current millisecond has passed already.
    instant = timeout == 0 ? 0 : now + timeout + 1
  }

  /// Reads the clock again.
  mutating func refresh() { now = monotonicMilliseconds() }
}

/// One attempt to send the request of a call.
struct Attempt<Caller: Sendable>: Sendable {
  let caller: Caller
  /// Identifies the attempt for a cancellation.
  let token: UInt64
  let deadline: CallDeadline
  /// The place among the requests in flight that is reserved for the call, or nil.
  let reservation: Reservation?
  /// Whether the call began before: a client that is shutting down waits for such calls, and refuses new ones.
  let isContinuation: Bool
}

/// A place among the requests in flight, reserved for a call. It is valid for one connection only.
struct Reservation: Equatable, Sendable {
  let incarnation: UInt64
}

/// A store as calls name it.
struct StoreReference: Sendable {
  /// The client's number for the store.
  let number: UInt32
  let name: String
  /// How old what is read may be, in milliseconds; nil if it must be current.
  let maxStaleness: UInt32?
}

/// What a request addresses, with the client's number for a store.
enum RequestTarget: Sendable {
  case server
  /// A store, by its handle.
  case store(UInt32)
  /// A store that the request opens by its name.
  case opening(UInt32)

  /// Whether the request opens a store. It then precedes the waiting calls, which may wait for just that.
  var isOpening: Bool { if case .opening = self { true } else { false } }

  var storeNumber: UInt32? {
    switch self {
    case .server: nil
    case .store(let number), .opening(let number): number
    }
  }
}
