import Wire

/// A caller who can be resumed with what a frame says.
struct Completion<Caller: Sendable>: Sendable {
  let caller: Caller
  let form: ReplyForm
  let header: FrameHeader
  /// Where the frame begins in the bytes that were scanned.
  let offset: Int
  /// The answer that this is a frame of, when more follow.
  let rest: AnswerID?
  let store: UInt16?
}

/// How far a scan of received bytes went.
struct ReplyScan: Equatable {
  /// Bytes of whole frames, which need not be kept once the completions are dealt with.
  var consumed = 0
  /// How many bytes the frame behind them takes at least.
  var wanted = Frame.headerSize
  /// A reply says that a store is not known, or opened one.
  var concernsStores = false
  var end: End?

  /// Why nothing more is to be read from a connection.
  enum End: Equatable {
    case notice(LarderError)
    case violation(String)
  }
}

extension PendingTable {
  /// Goes through the whole frames of `bytes`, and adds to `completions` who is to be resumed with what. O(frames).
  /// - Parameter largest: the greatest length that a frame may declare.
  mutating func take(_ bytes: RawSpan, largest: Int, into completions: inout [Completion<Caller>]) -> ReplyScan {
    var scan = ReplyScan()
    while true {
      switch FrameScan(bytes, at: scan.consumed, largest: largest) {
      case .partial(let size):
        scan.wanted = size
        return scan
      case .invalid(let length):
        scan.end = .violation("a frame says that \(length) bytes follow, and at most \(largest) may")
        return scan
      case .frame(let header):
        if header.id == 0 {
          scan.end = .notice(LarderError(frame: header, body: bytes.extracting(header.body(at: scan.consumed))))
          return scan
        }
        guard let index = slot(of: header.id) else {
          scan.end = .violation("a reply to \(header.id), which is no request")
          return scan
        }
        if let fault = take(header, of: index, bytes, &scan, into: &completions) {
          scan.end = .violation(fault)
          return scan
        }
        scan.consumed &+= header.frameSize
      }
    }
  }

  /// - Returns: what is wrong with the frame, or nil.
  @inline(__always)
  private mutating func take(
    _ header: FrameHeader, of index: Int, _ bytes: RawSpan, _ scan: inout ReplyScan,
    into completions: inout [Completion<Caller>]
  ) -> String? {
    let form = slots[index].form
    // An error ends an answer, whatever its flags say.
    let hasMore = header.flags & Frame.more != 0 && header.kind == Wire.Outcome.done.rawValue
    if form == .opened || header.detail == ErrorCode.storeUnknown.rawValue { scan.concernsStores = true }
    guard form.isAnswer else {
      if hasMore { return "a reply in several frames to a request that takes one" }
      if let caller = slots[index].caller {
        completions.append(
          Completion(
            caller: caller, form: form, header: header, offset: scan.consumed, rest: nil, store: slots[index].store))
      }
      inFlight &-= 1
      free(index)
      return nil
    }
    if slots[index].phase == .abandoned {
      if !hasMore {
        inFlight &-= 1
        free(index)
      }
      return nil
    }
    return takeAnswer(header, of: index, hasMore: hasMore, bytes, scan.consumed, into: &completions)
  }
}
