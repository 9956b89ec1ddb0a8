import Wire

/// The form of a reply with the outcome *done*, by which the thread that reads it decodes it in place.
enum ReplyForm: Sendable {
  case empty
  case number
  /// A number below 2⁶³.
  case revision
  case entry
  /// A body that the call decodes.
  case body
  /// A reply stream: frames of records, of which all but the last have the MORE flag. It can be cancelled.
  case stream
  /// The handle of a store, which the connection keeps.
  case openedStore
}

/// What a suspended call is resumed with: the reply to its request, or what to do before it can have one.
enum CallResult: Sendable {
  case empty
  case number(UInt64)
  case entry(kind: ValueKind, revision: UInt64, expiry: UInt64, value: [UInt8])
  /// The reply to a get of a key that has no entry. It is frequent, so it isn't an error.
  case notFound
  /// A whole body, or one frame of a reply stream; with the stream if more frames follow.
  case body([UInt8], stream: ReplyStreamID?)
  /// Submit the request again: with the reservation if the call waited for a place among the requests in flight.
  case retry(Reservation?)
  /// Open the store, which this connection does not have open, and submit the request again.
  case mustOpenStore
  case failed(LarderError, FailureCause)

  /// Why a call failed, as far as it matters for a retry.
  enum FailureCause: Sendable {
    /// The connection ended. The call may succeed on another one.
    case connectionLost
    case final
  }

  /// Decodes a frame, or returns nil if its body does not have the form.
  static func decode(_ header: FrameHeader, _ body: RawSpan, as form: ReplyForm, stream: ReplyStreamID?) -> CallResult?
  {
    guard header.kind == Wire.Outcome.done.rawValue else {
      if form == .entry, header.detail == ErrorCode.notFound.rawValue { return .notFound }
      return .failed(LarderError(frame: header, body: body), .final)
    }
    switch form {
    case .entry:
      guard let record = EntryRecord(body, at: 0), let kind = record.kind, record.end == body.byteCount else {
        return nil
      }
      return .entry(
        kind: kind, revision: record.revision, expiry: record.expiry, value: body.extracting(record.value).toArray())
    case .number:
      guard body.byteCount == 8, let number = body.integer(at: 0, as: UInt64.self) else { return nil }
      return .number(number)
    case .revision:
      guard body.byteCount == 8, let revision = body.revision(at: 0) else { return nil }
      return .number(revision)
    case .empty: return body.byteCount == 0 ? .empty : nil
    case .openedStore: return OpenedStore(body).map { .number(UInt64($0.handle)) }
    case .body, .stream: return .body(body.toArray(), stream: stream)
    }
  }

  // MARK: Values

  /// The number of a reply to a request of the form `number` or `revision`.
  var number: UInt64 {
    guard case .number(let number) = self else { preconditionFailure("The request's reply is not a number.") }
    return number
  }

  /// The body of a reply to a request of the form `body`.
  var body: [UInt8] {
    guard case .body(let body, _) = self else { preconditionFailure("The request's reply has no body.") }
    return body
  }
}
