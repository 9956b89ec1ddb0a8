import Platform

extension Connection {
  /// Decides who reads, now that a call has been put in.
  /// - Returns: whether it is the caller.
  @inline(__always)
  func direct(_ now: UInt64, _ state: inout State) -> Bool {
    switch state.direct.called(isAlone: state.table.inFlight == 1) {
    case .nothing: return false
    case .read: return true
    case .readAlone:
      watch(&state)
      state.nextLook = min(state.nextLook, now + DirectReading.idleMilliseconds)
      return true
    case .handBack:
      watch(&state)
      return false
    }
  }

  /// Waits for a reply: awake at first, as falling asleep and being woken takes longer than a server that is not busy does.
  private static func awaitReply(_ socket: SocketReference) -> Bool {
    for _ in 0..<DirectReading.looks where socket.descriptor.waitUntilReadable(microseconds: 0) { return true }
    return socket.descriptor.waitUntilReadable(microseconds: DirectReading.patienceMicroseconds)
  }

  /// Reads what the caller waits for, if it comes soon.
  func readDirectly() {
    guard let socket = state.withLock({ $0.socket }) else { return }
    let isReadable = Self.awaitReply(socket)
    let end = isReadable ? receive() : nil
    state.withLock { state in
      let step = state.direct.read(isInTime: isReadable, isDone: state.table.inFlight == 0)
      if step == .handBack { watch(&state) }
      if let end, state.end == nil, state.socket === socket { state.end = end }
    }
    // Only the loop ends connections.
    if end != nil { loop.wake() }
  }
}
