import Wire

/// The unfinished requests of a connection, by their ids.
///
/// An id is the number of a slot and the slot's generation. So a reply finds its call without a dictionary, and a reply
/// to an earlier request, or to none, is recognized. An abandoned call keeps its slot until its last frame has arrived:
/// until then the server counts the request, and the id must not be used again.
///
/// A plain value that does no I/O; the lock of the connection's state protects it.
struct PendingTable<Caller: Sendable>: Sendable {
  /// The maximum number of requests that ids can distinguish.
  static var maxCount: Int { 65_000 }

  private enum Phase {
    case free
    /// No frame of the reply has arrived.
    case waiting
    /// The caller is gone. Frames that still arrive are dropped.
    case abandoned
    /// Some frames of a reply stream have arrived, and more follow.
    case streaming
    /// The last frame of a reply stream has arrived, and its reader has not taken it. The server has forgotten the id.
    case ended
  }

  private struct Slot: Sendable {
    var phase = Phase.free
    var form = ReplyForm.empty
    var generation: UInt16 = 1
    /// The client's number for the store, or nil for a request that addresses none.
    var store: UInt32?
    var nextFree: Int32 = -1
    /// The caller that waits for the next frame.
    var caller: Caller?
    /// Identifies the call within the client. Never used again, so that a late cancellation can't hit another call.
    var token: UInt64 = 0
    /// The caller's deadline in milliseconds; `.max` if no caller waits.
    var deadline = UInt64.max
    /// When the request was submitted, in milliseconds.
    var submitted: UInt64 = 0
    /// The position of the request's end in the connection's output.
    var requestEnd: UInt64 = 0
  }

  private var slots: [Slot] = []
  private var streams: [Int: ReplyStreamBuffer] = [:]
  private var firstFree: Int32 = -1
  /// The number of requests that the server has not finished, as far as the client knows.
  private(set) var inFlight = 0
  /// The number of calls that wait for the first frame of their reply.
  private(set) var waitingCalls = 0
  /// The bytes of each reply stream that the server may send ahead of its reader.
  private let credit: Int

  init(credit: Int) {
    self.credit = credit
  }

  // MARK: Adding and removing requests

  /// Whether there are reply streams that have not been read to their end.
  var hasStreams: Bool { !streams.isEmpty }

  /// Whether there is a slot for another request, however many ended streams wait to be read.
  var hasRoom: Bool { firstFree >= 0 || slots.count < Self.maxCount }

  /// Adds a request. O(1).
  /// - Returns: The id for the request's frame, and its slot.
  /// - Precondition: `hasRoom`.
  mutating func insert(
    _ caller: Caller?, token: UInt64, form: ReplyForm, store: UInt32?, deadline: UInt64, now: UInt64
  ) -> (id: UInt32, slot: Int) {
    if firstFree < 0 {
      precondition(slots.count < Self.maxCount)
      firstFree = Int32(slots.count)
      slots.append(Slot())
    }
    let index = Int(firstFree)
    inFlight &+= 1
    waitingCalls &+= 1
    return (
      // A closure over the slot, so that its array element is looked up once.
      { slot in
        firstFree = slot.nextFree
        slot.phase = .waiting
        slot.form = form
        slot.store = store
        slot.caller = caller
        slot.token = token
        slot.deadline = deadline
        slot.submitted = now
        return UInt32(slot.generation) << 16 | UInt32(index &+ 1)
      }(&slots[index]), index
    )
  }

  /// Adds a request without a caller, whose reply has no body.
  /// - Returns: The id for the request's frame.
  mutating func insertUnattended(now: UInt64) -> UInt32 {
    let (id, slot) = insert(nil, token: 0, form: .empty, store: nil, deadline: .max, now: now)
    slots[slot].phase = .abandoned
    waitingCalls &-= 1
    return id
  }

  /// Records where in the connection's output a request ends.
  mutating func setRequestEnd(_ position: UInt64, of slot: Int) { slots[slot].requestEnd = position }

  /// Abandons a call: frames that still arrive for it are dropped.
  /// - Returns: The caller if it was waiting, and the id to send a cancel frame for if the server is still sending a
  ///   stream.
  mutating func abandon(_ slot: Int) -> (caller: Caller?, cancelID: UInt32?) {
    let caller = slots[slot].caller
    slots[slot].caller = nil
    slots[slot].deadline = .max
    switch slots[slot].phase {
    case .waiting, .streaming:
      if slots[slot].phase == .waiting { waitingCalls &-= 1 }
      slots[slot].phase = .abandoned
      streams[slot] = nil
      return (caller, slots[slot].form == .stream ? id(of: slot) : nil)
    case .ended:
      removeStream(slot)
      return (caller, nil)
    case .abandoned, .free:
      return (caller, nil)
    }
  }

  /// Abandons the calls whose deadline has passed. O(slots).
  /// - Returns: Those callers, the ids to send cancel frames for, and the earliest deadline among the others.
  mutating func expire(now: UInt64) -> (callers: [Caller], cancelIDs: [UInt32], nextDeadline: UInt64) {
    var callers: [Caller] = []
    var cancelIDs: [UInt32] = []
    var nextDeadline = UInt64.max
    for index in slots.indices where slots[index].deadline != .max {
      guard slots[index].deadline <= now else {
        nextDeadline = min(nextDeadline, slots[index].deadline)
        continue
      }
      let (caller, cancelID) = abandon(index)
      if let caller { callers.append(caller) }
      if let cancelID { cancelIDs.append(cancelID) }
    }
    return (callers, cancelIDs, nextDeadline)
  }

  /// Removes all requests, because the connection is gone. Reply streams keep the frames that have arrived, and then
  /// fail.
  /// - Parameter streamError: The error of streams that have no waiting reader.
  mutating func connectionLost(streamError: LarderError) -> [UnansweredCall<Caller>] {
    var calls: [UnansweredCall<Caller>] = []
    for index in slots.indices {
      let slot = slots[index]
      switch slot.phase {
      case .free, .ended: continue
      case .waiting, .abandoned:
        if let caller = slot.caller {
          calls.append(UnansweredCall(caller: caller, requestEnd: slot.requestEnd, isPartial: false))
        }
        free(index)
      case .streaming:
        if let caller = slot.caller {
          calls.append(UnansweredCall(caller: caller, requestEnd: slot.requestEnd, isPartial: true))
          removeStream(index)
        } else {
          streams[index]?.failure = streamError
          slots[index].phase = .ended
        }
      }
    }
    inFlight = 0
    waitingCalls = 0
    return calls
  }

  private mutating func free(_ index: Int) {
    let next = firstFree
    ({ slot in
      slot.phase = .free
      slot.caller = nil
      slot.deadline = .max
      // Skips generation 0, so that no id is 0.
      slot.generation = slot.generation == .max ? 1 : slot.generation &+ 1
      slot.nextFree = next
    })(&slots[index])
    firstFree = Int32(index)
  }

  // MARK: Looking up requests

  /// The slot of an unfinished request, or nil if none has the id.
  private func slot(of id: UInt32) -> Int? {
    let index = Int(id & 0xFFFF) &- 1
    guard index >= 0, index < slots.count else { return nil }
    guard slots[index].generation == UInt16(id >> 16) else { return nil }
    switch slots[index].phase {
    case .waiting, .abandoned, .streaming: return index
    case .free, .ended: return nil
    }
  }

  private func id(of index: Int) -> UInt32 {
    UInt32(slots[index].generation) << 16 | UInt32(index &+ 1)
  }

  /// The slot of the call with a token if no frame of its reply has arrived. O(slots), which only cancellations pay.
  func waitingSlot(token: UInt64) -> Int? {
    slots.firstIndex { $0.token == token && $0.phase == .waiting }
  }

  /// The slot of a stream that is still being read, or nil.
  func slot(of stream: ReplyStreamID) -> Int? {
    guard stream.slot < slots.count, slots[stream.slot].token == stream.token else { return nil }
    switch slots[stream.slot].phase {
    case .streaming, .ended: return stream.slot
    case .free, .waiting, .abandoned: return nil
    }
  }

  /// Whether the reader of a stream waits for its next frame.
  func isReaderWaiting(for stream: ReplyStreamID) -> Bool { slot(of: stream).map { slots[$0].caller != nil } ?? false }

  /// Whether a reader, such as that of a watch, waits for a frame without a deadline. O(slots).
  var hasReaderWithoutDeadline: Bool {
    slots.contains { $0.phase == .streaming && $0.caller != nil && $0.deadline == .max }
  }

  /// When the oldest request without any reply was submitted, in milliseconds; nil if there is none. O(slots).
  var oldestUnanswered: UInt64? {
    var oldest: UInt64?
    for slot in slots where slot.phase == .waiting || (slot.phase == .abandoned && slot.form != .stream) {
      oldest = min(oldest ?? .max, slot.submitted)
    }
    return oldest
  }

  /// Whether a request on the store is unfinished. O(slots).
  func hasRequest(on store: UInt32) -> Bool {
    slots.contains { slot in
      guard slot.store == store else { return false }
      switch slot.phase {
      case .waiting, .abandoned, .streaming: return true
      case .free, .ended: return false
      }
    }
  }

  /// The stores with requests that the server may not have begun to process. O(slots).
  var busyStores: Set<UInt32> {
    var stores: Set<UInt32> = []
    for slot in slots where slot.phase == .waiting || slot.phase == .abandoned {
      if let store = slot.store { stores.insert(store) }
    }
    return stores
  }

  // MARK: Replies

  /// Processes the whole frames at the beginning of `bytes`. O(frames).
  /// - Parameters:
  ///   - maxFrameLength: The maximum length that a frame may declare.
  ///   - completions: Receives the callers to resume, each with its frame.
  mutating func scan(
    _ bytes: RawSpan, maxFrameLength: Int, into completions: inout [Completion<Caller>]
  ) -> ReplyScan {
    var scan = ReplyScan()
    while true {
      switch FrameScan(bytes, at: scan.consumed, maxLength: maxFrameLength) {
      case .partial(let size):
        scan.neededBytes = size
        return scan
      case .invalid(let length):
        scan.closeReason = .protocolViolation(
          "frame length \(length) is outside \(Frame.minLength)…\(maxFrameLength)")
        return scan
      case .frame(let header):
        if header.id == 0 {
          scan.closeReason = .notice(LarderError(frame: header, body: bytes.extracting(header.body(at: scan.consumed))))
          return scan
        }
        guard let slot = slot(of: header.id) else {
          scan.closeReason = .protocolViolation("a reply has the unknown request id \(header.id)")
          return scan
        }
        if let violation = process(header, of: slot, bytes, &scan, into: &completions) {
          scan.closeReason = .protocolViolation(violation)
          return scan
        }
        scan.consumed &+= header.frameSize
      }
    }
  }

  /// Processes one frame.
  /// - Returns: How the frame violates the protocol, or nil.
  @inline(__always)
  private mutating func process(
    _ header: FrameHeader, of index: Int, _ bytes: RawSpan, _ scan: inout ReplyScan,
    into completions: inout [Completion<Caller>]
  ) -> String? {
    let form = slots[index].form
    let isDone = header.kind == Wire.Outcome.done.rawValue
    // An error ends a stream, whatever its flags say.
    let hasMore = header.flags & Frame.more != 0 && isDone
    if form == .openedStore || ReplyScan.refusesHandle(header.detail), let store = slots[index].store {
      scan.addStoreEvent(store, header, bytes, isOpening: form == .openedStore)
    }
    guard form == .stream else {
      if hasMore { return "a reply that must have a single frame has several" }
      if let caller = slots[index].caller {
        waitingCalls &-= 1
        completions.append(
          Completion(caller: caller, form: form, header: header, offset: scan.consumed, stream: nil))
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
    return processStream(header, of: index, hasMore: hasMore, bytes, scan.consumed, into: &completions)
  }

  /// Processes one frame of a reply stream: it goes to the reader that waits for it, or into the stream's buffer.
  /// - Returns: How the frame violates the protocol, or nil.
  private mutating func processStream(
    _ header: FrameHeader, of index: Int, hasMore: Bool, _ bytes: RawSpan, _ offset: Int,
    into completions: inout [Completion<Caller>]
  ) -> String? {
    if slots[index].phase == .waiting {
      slots[index].phase = .streaming
      waitingCalls &-= 1
      if hasMore { streams[index] = ReplyStreamBuffer(credit: credit) }
    }
    let isDone = header.kind == Wire.Outcome.done.rawValue
    // Errors need no credit.
    if isDone, streams[index]?.spendCredit(header.frameSize) == false {
      return "a frame of a reply stream exceeds the credit"
    }
    if !hasMore { inFlight &-= 1 }

    if let caller = slots[index].caller {
      slots[index].caller = nil
      slots[index].deadline = .max
      let stream = hasMore ? ReplyStreamID(slot: index, token: slots[index].token) : nil
      completions.append(Completion(caller: caller, form: .stream, header: header, offset: offset, stream: stream))
      streams[index]?.readerDidTake(header.frameSize)
      if !hasMore { removeStream(index) }
      return nil
    }
    let body = bytes.extracting(header.body(at: offset))
    if isDone {
      streams[index]?.append(.init(body: body.toArray(), size: header.frameSize))
    } else {
      streams[index]?.failure = LarderError(frame: header, body: body)
    }
    if !hasMore { slots[index].phase = .ended }
    return nil
  }

  // MARK: Reply streams

  /// The result of asking for the next frame of a stream.
  enum NextFrame {
    case reply(CallResult)
    /// The caller waits in its slot.
    case wait
  }

  /// Takes the next frame of a stream for `caller`, or lets it wait for the frame.
  /// - Returns: The result, and the credit to grant the server.
  mutating func nextFrame(
    of stream: ReplyStreamID, for caller: Caller, deadline: UInt64
  ) -> (next: NextFrame, credit: (id: UInt32, bytes: Int)?) {
    guard let index = slot(of: stream), streams[index] != nil else {
      return (.reply(.failed(.streamAbandoned, .final)), nil)
    }
    let failure = streams[index]?.failure
    if let frame = streams[index]?.popFirst() {
      let isLast = slots[index].phase == .ended && streams[index]!.isEmpty && failure == nil
      let credit = isLast ? nil : grantCredit(index)
      if isLast { removeStream(index) }
      return (.reply(.body(frame.body, stream: isLast ? nil : stream)), credit)
    }
    if let error = failure {
      removeStream(index)
      return (.reply(.failed(error, .final)), nil)
    }
    slots[index].caller = caller
    slots[index].deadline = deadline
    return (.wait, grantCredit(index))
  }

  /// Grants credit to the stream in a slot, if it is time to.
  private mutating func grantCredit(_ index: Int) -> (id: UInt32, bytes: Int)? {
    guard slots[index].phase == .streaming, let bytes = streams[index]?.grantCredit(threshold: credit / 2) else {
      return nil
    }
    return (id(of: index), bytes)
  }

  private mutating func removeStream(_ index: Int) {
    streams[index] = nil
    free(index)
  }
}
