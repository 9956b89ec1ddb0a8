import Dispatch
import Platform
import Wire

extension Connection {
  static let helloID = UInt32.max

  /// Begins a connection. A host name is resolved on a thread of its own, as that can take its time.
  func connect(_ incarnation: UInt64, attempt: Int) {
    if case .unix = address {
      return settle(Arrival(incarnation: incarnation, outcome: Self.dial(address, attempt: attempt)))
    }
    let isResolving = state.withLock { state in
      defer { state.isResolving = true }
      return state.isResolving
    }
    // A resolver that hangs is waited for, up to the attempt's time, instead of being joined by ever more of its kind.
    if isResolving { return }
    DispatchQueue.global().async { [self] in
      let outcome = Self.dial(address, attempt: attempt)
      state.withLock { state in
        state.isResolving = false
        state.arrival = Arrival(incarnation: incarnation, outcome: outcome)
      }
      loop.wake()
    }
  }

  private static func dial(_ address: Address, attempt: Int) -> Arrival.Outcome {
    do {
      switch try Socket.connect(to: address, attempt: attempt) {
      case .connected(let socket): return .connected(SocketReference(socket))
      case .pending(let socket): return .pending(SocketReference(socket))
      }
    } catch {
      return .failed(error.reason)
    }
  }

  func takeArrival() -> Arrival? {
    state.withLock { $0.arrival.take() }
  }

  /// Goes on with an attempt whose socket is there, or isn't. One that was given up is let go of.
  func settle(_ arrival: Arrival) {
    let socket: SocketReference
    let interest: Poll.Interest
    switch arrival.outcome {
    case .failed(let reason):
      if state.withLock({ $0.link.incarnation == arrival.incarnation }) { lose(.broken(reason)) }
      return
    case .connected(let connected): (socket, interest) = (connected, .reading)
    case .pending(let pending): (socket, interest) = (pending, .writing)
    }
    let isPending = interest == .writing
    let problem = state.withLock { state -> String? in
      guard state.link.incarnation == arrival.incarnation, !state.link.isClosed else { return nil }
      do throws(SystemError) {
        try loop.poll.add(socket.descriptor.number, interest, token: token(arrival.incarnation))
        state.socket = socket
        return nil
      } catch { return error.description }
    }
    if let problem { return lose(.broken(problem)) }
    if !isPending { greet() }
  }

  /// A pending connection is decided.
  func finishConnecting() {
    guard let socket = state.withLock({ $0.socket }) else { return }
    if let error = Socket.connectionError(of: socket.descriptor) {
      lose(.broken(error.description))
    } else {
      greet()
    }
  }

  /// Sends the hello. It is small and the first to be sent, so that it fits the socket.
  private func greet() {
    let socket = state.withLock { state -> SocketReference? in
      guard let socket = state.socket else { return nil }
      state.link.connected()
      watch(&state)
      return socket
    }
    guard let socket else { return }
    reading.withLock { reading in
      reading.socket = socket
      reading.isGreeted = false
      reading.wanted = 0
      reading.input.removeAll()
    }
    var hello = ByteBuffer()
    hello.appendRequest(
      ClientHello(credit: UInt32(configuration.credit), name: configuration.helloName), id: Self.helloID)
    let sent = unsafe socket.descriptor.send(hello.bytes)
    switch sent {
    case .moved(hello.count): break
    case .failed(let error): lose(.broken(error.description))
    case .moved, .wouldBlock: lose(.broken("the socket does not take a hello"))
    }
  }
}
