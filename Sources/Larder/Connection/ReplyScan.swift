import Wire

/// A caller, and the frame to resume it with.
struct Completion<Caller: Sendable>: Sendable {
  let caller: Caller
  let form: ReplyForm
  let header: FrameHeader
  /// The offset of the frame in the scanned bytes.
  let offset: Int
  /// The stream that the frame belongs to if more frames follow.
  let stream: ReplyStreamID?

  /// Whether the caller has opened a store.
  var opensStore: Bool { form == .openedStore && header.kind == Wire.Outcome.done.rawValue }
}

/// A caller whose connection ended before its reply was complete.
struct UnansweredCall<Caller: Sendable>: Sendable {
  let caller: Caller
  /// The position of the request's end in the connection's output.
  let requestEnd: UInt64
  /// Whether earlier frames of the reply have been delivered.
  let isPartial: Bool
}

/// The result of scanning received bytes.
struct ReplyScan {
  /// The bytes of whole frames. They are no longer needed after the completions are delivered.
  var consumed = 0
  /// The minimum size of the frame that follows.
  var neededBytes = Frame.headerSize
  /// What replies say about stores.
  private(set) var storeEvents: [StoreEvent] = []
  /// Why nothing more must be read from the connection, or nil.
  var closeReason: CloseReason?

  enum StoreEvent {
    case opened(store: UInt32, handle: UInt16)
    /// The server does not know the store's handle, or that of a store that it may not serve any more.
    case unknown(store: UInt32)
  }

  /// Whether an error with this code means that the store must be opened again. Another server may have taken it over,
  /// and this one again since.
  @inline(__always)
  static func refusesHandle(_ code: UInt16) -> Bool {
    code == ErrorCode.storeUnknown.rawValue || code == ErrorCode.notLeader.rawValue
  }

  /// Records what a reply says about a store: also a reply to a call that has given up.
  mutating func addStoreEvent(_ store: UInt32, _ header: FrameHeader, _ bytes: RawSpan, isOpening: Bool) {
    if header.kind != Wire.Outcome.done.rawValue {
      if !isOpening, Self.refusesHandle(header.detail) { storeEvents.append(.unknown(store: store)) }
    } else if isOpening, let opened = OpenedStore(bytes.extracting(header.body(at: consumed))) {
      storeEvents.append(.opened(store: store, handle: opened.handle))
    }
  }
}
