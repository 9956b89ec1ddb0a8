import Wire

/// The requests of one connection that are not finished, by their ids: a plain value that does no I/O.
///
/// An id names a slot and the slot's generation, so that a reply finds its call without a dictionary, and a reply to a request of the
/// past is told from one that never was asked for. A call that was given up keeps its slot until its last frame has come: until then
/// the server counts it, and its id must not be used again. Owned by the connection's lock.
struct PendingTable<Caller: Sendable>: Sendable {
  /// The most requests that ids can tell apart.
  static var largestCount: Int { 65_000 }

  enum Phase {
    case free
    /// No frame of the reply has come.
    case waiting
    /// The caller has gone; what comes is dropped.
    case abandoned
    /// Some frames of the answer have come, and more follow.
    case streaming
    /// The last frame has come, and the caller has not asked for it yet. The server has forgotten the id.
    case ended
  }

  struct Slot: Sendable {
    var phase = Phase.free
    var form = ReplyForm.empty
    var generation: UInt16 = 1
    /// The client's number for the store, or nil for a request that takes none.
    var store: UInt16?
    var nextFree: Int32 = -1
    /// Who waits for the next frame.
    var caller: Caller?
    /// Names the call within the client. Never used again, so that a late cancellation can't hit another call.
    var token: UInt64 = 0
    /// When the caller's time is up, in milliseconds; `.max` when nobody waits.
    var deadline = UInt64.max
    /// When the request was put in, in milliseconds.
    var began: UInt64 = 0
    /// How many bytes had been put into the connection, up to the end of this request.
    var position: UInt64 = 0
  }

  var slots: [Slot] = []
  var queues: [Int: AnswerQueue] = [:]
  /// How many requests the server has not finished, as far as is known.
  var inFlight = 0
  private var firstFree: Int32 = -1

  /// What an answer's server may send ahead, in bytes.
  let credit: Int

  init(credit: Int) {
    self.credit = credit
  }

  /// Takes a slot for a call. O(1).
  /// - Parameter caller: nil when nobody waits for the reply.
  /// - Returns: the id for the request's frame.
  /// - Precondition: fewer than `largestCount` slots are taken.
  mutating func insert(
    _ caller: Caller?, token: UInt64, form: ReplyForm, store: UInt16?, deadline: UInt64, now: UInt64
  ) -> (id: UInt32, slot: Int) {
    if firstFree < 0 {
      precondition(slots.count < Self.largestCount)
      firstFree = Int32(slots.count)
      slots.append(Slot())
    }
    let index = Int(firstFree)
    inFlight &+= 1
    return (
      { slot in
        firstFree = slot.nextFree
        slot.phase = .waiting
        slot.form = form
        slot.store = store
        slot.caller = caller
        slot.token = token
        slot.deadline = deadline
        slot.began = now
        return UInt32(slot.generation) << 16 | UInt32(index &+ 1)
      }(&slots[index]), index
    )
  }

  /// Takes a slot for a ping whose reply nobody waits for.
  /// - Returns: the id for the request's frame.
  mutating func insertProbe(token: UInt64, now: UInt64) -> UInt32 {
    let (id, slot) = insert(nil, token: token, form: .empty, store: nil, deadline: .max, now: now)
    slots[slot].phase = .abandoned
    return id
  }

  /// Whether somebody waits for a frame of an answer without a deadline, as watches do. O(slots).
  var hasEndlessWait: Bool {
    slots.contains { $0.phase == .streaming && $0.caller != nil && $0.deadline == .max }
  }

  /// Whether there is a slot for one more call, however many ended answers wait to be read.
  var hasRoom: Bool { firstFree >= 0 || slots.count < Self.largestCount }

  /// The slot that an id names, or nil when no unfinished request has it.
  func slot(of id: UInt32) -> Int? {
    let index = Int(id & 0xFFFF) &- 1
    guard index >= 0, index < slots.count else { return nil }
    guard slots[index].generation == UInt16(id >> 16) else { return nil }
    switch slots[index].phase {
    case .waiting, .abandoned, .streaming: return index
    case .free, .ended: return nil
    }
  }

  func id(of index: Int) -> UInt32 {
    UInt32(slots[index].generation) << 16 | UInt32(index &+ 1)
  }

  /// Gives a slot back.
  mutating func free(_ index: Int) {
    let next = firstFree
    // A closure over the slot, so that its place in the array is looked up once.
    ({ slot in
      slot.phase = .free
      slot.caller = nil
      slot.deadline = .max
      // Generation 0 is left out, which keeps every id from being 0.
      slot.generation = slot.generation == .max ? 1 : slot.generation &+ 1
      slot.nextFree = next
    })(&slots[index])
    firstFree = Int32(index)
  }

  /// Whether the request of a store is unfinished.
  func hasRequest(of store: UInt16) -> Bool {
    slots.contains { $0.store == store && ($0.phase == .waiting || $0.phase == .abandoned || $0.phase == .streaming) }
  }
}
