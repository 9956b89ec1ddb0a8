/// Why a call did not succeed, and what is known of it now.
///
/// `kind` is what to switch over, `code` is what to log or compare across languages, `outcome` says whether the request may have been
/// carried out, and `isSafeToRetry` whether the same call may be made again without a risk of doing it twice.
public struct LarderError: Error, Hashable, Sendable {
  public let kind: Kind
  /// A stable number: the server's own (below 256, `Protocol/wire.md` §7), or one of this library's (256 and up, `Kind.code`).
  public let code: UInt16
  public let outcome: Outcome
  /// What happened, in words for people. Not stable.
  public let message: String
  /// Whether the call only reads, so that making it again does no harm.
  let isRead: Bool

  /// What is known of the request.
  public enum Outcome: Hashable, Sendable {
    /// Nothing happened, and the same call may succeed later.
    case notExecuted
    /// Nothing happened, and the same call would be refused again as long as the store stays as it is.
    case rejected
    /// The request may have been carried out, wholly or not at all.
    case unknown
  }

  init(_ kind: Kind, code: UInt16? = nil, outcome: Outcome, isRead: Bool = false, _ message: String) {
    self.kind = kind
    self.code = code ?? kind.code
    self.outcome = outcome
    self.isRead = isRead
    self.message = message
  }

  /// Whether the same call may be made again without a risk of being carried out twice: it was not executed, or it only reads.
  public var isSafeToRetry: Bool {
    switch outcome {
    case .notExecuted: true
    case .rejected: false
    case .unknown: isRead
    }
  }

  /// The same error, of a call that only reads.
  func ofRead(_ isRead: Bool) -> LarderError {
    isRead ? LarderError(kind, code: code, outcome: outcome, isRead: true, message) : self
  }
}
