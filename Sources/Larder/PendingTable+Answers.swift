import Wire

/// The frames of an answer that have come and were not asked for yet.
struct AnswerQueue {
  private var frames: [Frame] = []
  /// What the server may still send, as it counts it.
  var credit: Int
  /// Bytes that the consumer has taken, and the server was not given new credit for.
  var owed = 0
  /// How the answer ended, once it has.
  var failure: (LarderError, Reply.Cause)?

  struct Frame {
    let body: [UInt8]
    let size: Int
  }

  init(credit: Int) {
    self.credit = credit
  }

  var isEmpty: Bool { frames.isEmpty }

  mutating func append(_ frame: Frame) { frames.append(frame) }

  /// O(frames), which the credit keeps few.
  mutating func popFirst() -> Frame? {
    frames.isEmpty ? nil : frames.removeFirst()
  }
}

extension PendingTable {
  /// One frame of an answer, which goes to who waits for it, or into the queue.
  /// - Returns: what is wrong with the frame, or nil.
  mutating func takeAnswer(
    _ header: FrameHeader, of index: Int, hasMore: Bool, _ bytes: RawSpan, _ offset: Int,
    into completions: inout [Completion<Caller>]
  ) -> String? {
    let answer = AnswerID(slot: index, token: slots[index].token)
    if hasMore, header.bodySize == 0 { return "a frame of an answer that is empty and not the last" }
    let isFirst = slots[index].phase == .waiting
    if isFirst {
      slots[index].phase = .streaming
      if hasMore { queues[index] = AnswerQueue(credit: credit) }
    }
    // An error may come at any time; it is no part of the answer that credit is for.
    if header.kind == Wire.Outcome.done.rawValue, let left = queues[index]?.credit {
      if left <= 0 { return "a frame of an answer that has no credit" }
      queues[index]?.credit = left - header.frameSize
    }
    if !hasMore { inFlight &-= 1 }

    if let caller = slots[index].caller {
      slots[index].caller = nil
      slots[index].deadline = .max
      completions.append(
        Completion(
          caller: caller, form: .answer, header: header, offset: offset, rest: hasMore ? answer : nil,
          store: slots[index].store))
      queues[index]?.owed += header.frameSize
      if !hasMore { release(index) }
      return nil
    }
    let body = bytes.extracting(header.body(at: offset))
    if header.kind == Wire.Outcome.done.rawValue {
      queues[index]?.append(.init(body: body.toArray(), size: header.frameSize))
    } else {
      queues[index]?.failure = (LarderError(frame: header, body: body), .final)
    }
    if !hasMore { slots[index].phase = .ended }
    return nil
  }

  /// What asking for the next frame of an answer comes to.
  enum Next {
    case reply(Reply)
    /// The caller waits in its slot.
    case wait
  }

  /// Asks for the next frame of an answer on behalf of `caller`, who waits when there is none yet.
  /// - Returns: what to do, and how much credit to give, as id and bytes.
  mutating func next(
    of answer: AnswerID, for caller: Caller, deadline: UInt64
  ) -> (next: Next, credit: (id: UInt32, bytes: Int)?) {
    guard let index = slot(of: answer), let queue = queues[index] else {
      let error = LarderError(.cancelled, outcome: .unknown, isRead: true, "the answer was given up")
      return (.reply(.failed(error, .final)), nil)
    }
    if let frame = queues[index]?.popFirst() {
      queues[index]?.owed += frame.size
      let isLast = slots[index].phase == .ended && queues[index]!.isEmpty && queue.failure == nil
      let credit = isLast ? nil : grant(index)
      if isLast { release(index) }
      return (.reply(.body(frame.body, rest: isLast ? nil : answer)), credit)
    }
    if let (error, cause) = queue.failure {
      release(index)
      return (.reply(.failed(error, cause)), nil)
    }
    slots[index].caller = caller
    slots[index].deadline = deadline
    return (.wait, grant(index))
  }

  /// Credit for what was consumed, once it is worth a frame or the server has none left.
  private mutating func grant(_ index: Int) -> (id: UInt32, bytes: Int)? {
    guard slots[index].phase == .streaming, let queue = queues[index], queue.owed > 0 else { return nil }
    guard queue.owed >= credit / 2 || (queue.isEmpty && queue.credit <= 0) else { return nil }
    queues[index]?.credit += queue.owed
    queues[index]?.owed = 0
    return (id(of: index), queue.owed)
  }

  /// The slot of an answer that somebody still reads, or nil.
  func slot(of answer: AnswerID) -> Int? {
    guard answer.slot < slots.count, slots[answer.slot].token == answer.token else { return nil }
    switch slots[answer.slot].phase {
    case .streaming, .ended: return answer.slot
    case .free, .waiting, .abandoned: return nil
    }
  }

  /// Forgets an answer whose last frame has been delivered.
  mutating func release(_ index: Int) {
    queues[index] = nil
    free(index)
  }
}
