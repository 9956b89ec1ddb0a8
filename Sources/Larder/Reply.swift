import Wire

/// What a reply to a request looks like when it is *done*, so that whoever reads it can decode it in place.
enum ReplyForm: Sendable {
  case empty
  case number
  case entry
  /// A body that the caller decodes.
  case body
  /// Frames of entry records, whose last one has no MORE flag.
  case answer
  /// A store's handle, which the connection keeps.
  case opened

  /// Whether the reply may come in several frames and can be cancelled.
  var isAnswer: Bool { self == .answer }
}

/// What a suspended caller is resumed with.
enum Reply: Sendable {
  case empty
  case number(UInt64)
  case entry(kind: ValueKind, revision: UInt64, expiry: UInt64, value: [UInt8])
  /// A get found no such key: the commonest error, which costs nothing to say.
  case absent
  /// A whole body, or one frame of an answer; with an answer's id when more frames follow.
  case body([UInt8], rest: AnswerID?)
  /// The call waited for its turn, and has it now.
  case proceed(Permit?)
  /// The store is not open on this connection, and it is this caller who opens it.
  case mustOpen
  case failed(LarderError, Cause)

  /// Why a call failed, as far as it decides about trying again.
  enum Cause: Sendable {
    /// The connection ended; another one may do better.
    case connectionLost
    case final
  }

  /// Decodes a frame, or nil when its body is not of the form.
  static func decode(_ header: FrameHeader, _ body: RawSpan, as form: ReplyForm, rest: AnswerID?) -> Reply? {
    guard header.kind == Wire.Outcome.done.rawValue else {
      if form == .entry, header.detail == ErrorCode.notFound.rawValue { return .absent }
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
    case .empty: return body.byteCount == 0 ? .empty : nil
    case .opened: return OpenedStore(body).map { .number(UInt64($0.handle)) }
    case .body, .answer: return .body(body.toArray(), rest: rest)
    }
  }
}

/// A place among the requests in flight that was set aside for a caller; good for one connection only.
struct Permit: Equatable, Sendable {
  let incarnation: UInt64
}

/// An answer of several frames that has begun.
struct AnswerID: Hashable, Sendable {
  let slot: Int
  let token: UInt64
}
