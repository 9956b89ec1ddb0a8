import Platform
import Wire

extension Connection {
  /// Writes until there is nothing more to write or the socket is full.
  /// - Precondition: the caller has set `state.isWriting`.
  func flush() {
    // Requests that were taken out of the connection to be written without its lock.
    var batch = ByteBuffer()
    var incarnation: UInt64?
    while let socket = nextBatch(&batch, &incarnation) {
      while !batch.isEmpty {
        let sent = unsafe socket.descriptor.send(batch.bytes)
        switch sent {
        case .moved(let count): batch.consume(count)
        case .wouldBlock: return block(&batch, incarnation!)
        case .failed(let error): return giveUp(&batch, incarnation!, error)
        }
      }
    }
  }

  /// Puts what is to be written into `batch`, or ends the writing.
  private func nextBatch(_ batch: inout ByteBuffer, _ incarnation: inout UInt64?) -> SocketReference? {
    var admitted: [Caller] = []
    let socket = state.withLock { state -> SocketReference? in
      // A writer of a lost connection has no say in the next one.
      if let incarnation, incarnation != state.link.incarnation { return nil }
      incarnation = state.link.incarnation
      guard !state.output.isEmpty, let socket = state.socket else {
        state.isWriting = false
        keep(&batch, &state)
        return nil
      }
      if batch.capacity == 0 { swap(&batch, &state.spare) }
      swap(&batch, &state.output)
      state.handedBytes &+= UInt64(batch.count)
      admitted = state.admit()
      return socket
    }
    for caller in admitted { caller.resume(.proceed(permit(incarnation))) }
    return socket
  }

  /// Memory that is worth keeping for the next batch.
  private func keep(_ batch: inout ByteBuffer, _ state: inout State) {
    if batch.capacity > 1 << 20 { batch.releaseStorage() }
    if batch.capacity > state.spare.capacity { swap(&batch, &state.spare) }
    if state.output.isEmpty, state.output.capacity > 1 << 20 { state.output.releaseStorage() }
  }

  /// The socket is full: what is left goes back in front, and the loop goes on when there is room.
  private func block(_ batch: inout ByteBuffer, _ incarnation: UInt64) {
    state.withLock { state in
      guard incarnation == state.link.incarnation else { return }
      state.handedBytes &-= UInt64(batch.count)
      if !state.output.isEmpty { state.output.withSpan { batch.append($0) } }
      swap(&batch, &state.output)
      state.isWriting = false
      state.isBlocked = true
      watch(&state)
    }
  }

  /// The connection broke. What the server had to say first is still to be read, which is the loop's business.
  private func giveUp(_ batch: inout ByteBuffer, _ incarnation: UInt64, _ error: SystemError) {
    state.withLock { state in
      guard incarnation == state.link.incarnation else { return }
      state.isWriting = false
      state.isBlocked = true
      if state.end == nil { state.end = .broken(error.description) }
    }
    loop.wake()
  }

  /// The socket has room again.
  func resumeSending() {
    let mustFlush = state.withLock { state in
      guard state.isBlocked, state.end == nil else { return false }
      state.isBlocked = false
      watch(&state)
      let mustFlush = state.mustFlush
      if mustFlush { state.isWriting = true }
      return mustFlush
    }
    if mustFlush { flush() }
  }

  /// Tells the poll what the connection waits for.
  func watch(_ state: inout State) {
    guard let socket = state.socket else { return }
    var interest: Poll.Interest = state.direct.isOn ? [] : .reading
    if state.isBlocked { interest.insert(.writing) }
    loop.poll.change(socket.descriptor.number, interest, token: token(state.link.incarnation))
  }

  /// Names this connection in the poll's events.
  func token(_ incarnation: UInt64) -> UInt64 {
    incarnation << 8 | UInt64(number)
  }

  func permit(_ incarnation: UInt64?) -> Permit? {
    incarnation.map { Permit(incarnation: $0) }
  }
}
