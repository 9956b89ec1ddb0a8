/// A suspended call.
///
/// Safe because the tables that keep callers give each one out once, to be resumed by whoever took it out.
@safe
struct Caller: Sendable {
  private let continuation: UnsafeContinuation<Reply, Never>

  init(_ continuation: UnsafeContinuation<Reply, Never>) {
    unsafe self.continuation = continuation
  }

  func resume(_ reply: Reply) {
    unsafe continuation.resume(returning: reply)
  }

  /// Suspends the task until whoever gets the caller resumes it.
  @inline(__always)
  static func suspend(_ body: (Caller) -> Void) async -> Reply {
    unsafe await withUnsafeContinuation { unsafe body(Caller($0)) }
  }
}
