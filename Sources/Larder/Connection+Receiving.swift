import Platform
import Wire

extension Connection {
  /// What was received and not yet dealt with. Belongs to whoever holds its lock, which is to be taken before the state's.
  struct Reading: ~Copyable, Sendable {
    var socket: SocketReference?
    var input = ByteBuffer()
    /// How many bytes the frame at the beginning of `input` takes at least.
    var wanted = 0
    var completions: [Completion<Caller>] = []
    /// Whose replies can't be understood. They hear of it once the connection is over, so that they don't try again on it.
    var doomed: [Caller] = []
    var isGreeted = false
    var maxFrameSize = 0
  }

  private static let chunk = 65_536
  /// The greatest length of the hello's reply: it has grown beyond 30 bytes and a name in no version yet.
  private static let largestHello = 131_072

  /// Reads what there is, and resumes whose replies came.
  /// - Returns: why the connection is over, if it is.
  func receive() -> ConnectionEnd? {
    reading.withLock { reading -> ConnectionEnd? in
      guard let socket = reading.socket else { return nil }
      // Bounded, so that one connection's stream does not keep the loop from the others.
      for _ in 0..<16 {
        // Memory grows with what has come, never with what a frame says will come.
        let room = max(Self.chunk, min(reading.wanted - reading.input.count, reading.input.count))
        let transfer = unsafe reading.input.fill(room) { buffer -> (written: Int, result: Transfer) in
          let transfer = unsafe socket.descriptor.receive(into: buffer)
          if case .moved(let count) = transfer { return (count, transfer) }
          return (0, transfer)
        }
        switch transfer {
        case .moved(0): return .broken("the server closed it")
        case .moved(let count):
          if let end = process(&reading) { return end }
          if count < room { return nil }
        case .wouldBlock: return nil
        case .failed(let error): return .broken(error.description)
        }
      }
      return nil
    }
  }

  private func process(_ reading: inout Reading) -> ConnectionEnd? {
    if !reading.isGreeted {
      if let end = greet(&reading) { return end }
      guard reading.isGreeted else { return nil }
    }
    var scan = ReplyScan()
    var admitted: [Caller] = []
    var openers: [Caller] = []
    var isDraining = false
    var incarnation: UInt64 = 0
    let now = monotonicMilliseconds()
    state.withLock { state in
      incarnation = state.link.incarnation
      state.lastReceived = now
      scan = Self.take(&reading, &state)
      company.store(reading.completions.count, ordering: .relaxed)
      if scan.concernsStores || state.handles.hasStale { openers = attendStores(reading, &state) }
      admitted = state.admit()
      isDraining = state.isDraining
    }
    reading.wanted = scan.wanted
    var end = Self.deliver(&reading)
    reading.input.consume(scan.consumed)
    if reading.input.isEmpty, reading.input.capacity > 1 << 20 { reading.input.releaseStorage() }
    for caller in admitted { caller.resume(.proceed(Permit(incarnation: incarnation))) }
    for caller in openers { caller.resume(.proceed(nil)) }
    if isDraining { drain() }
    switch scan.end {
    case .notice(let error): end = .notice(error)
    case .violation(let reason): end = .violation(reason)
    case nil: break
    }
    return end
  }

  private static func take(_ reading: inout Reading, _ state: inout State) -> ReplyScan {
    reading.input.withSpan { bytes in
      state.table.take(bytes, largest: reading.maxFrameSize, into: &reading.completions)
    }
  }

  /// Resumes who is to be resumed, without any lock but that of the bytes.
  private static func deliver(_ reading: inout Reading) -> ConnectionEnd? {
    var end: ConnectionEnd?
    reading.input.withSpan { bytes in
      for completion in reading.completions {
        let body = bytes.extracting(completion.header.body(at: completion.offset))
        if let reply = Reply.decode(completion.header, body, as: completion.form, rest: completion.rest) {
          completion.caller.resume(reply)
        } else {
          reading.doomed.append(completion.caller)
          end = .violation("the body of a reply is malformed")
        }
      }
    }
    reading.completions.removeAll(keepingCapacity: true)
    return end
  }

  /// Takes the reply to the hello.
  private func greet(_ reading: inout Reading) -> ConnectionEnd? {
    let outcome = reading.input.withSpan { bytes -> (hello: ServerHello?, size: Int, end: ConnectionEnd?) in
      switch FrameScan(bytes, at: 0, largest: Self.largestHello) {
      case .partial: return (nil, 0, nil)
      case .invalid(let length): return (nil, 0, .violation("the first frame says that \(length) bytes follow"))
      case .frame(let header):
        let body = bytes.extracting(header.body(at: 0))
        guard header.kind == Wire.Outcome.done.rawValue else {
          return (nil, 0, .notice(LarderError(frame: header, body: body)))
        }
        guard header.id == Self.helloID, let hello = ServerHello(body: body) else {
          return (nil, 0, .violation("the hello's reply is malformed"))
        }
        guard ProtocolVersion.lowest...ProtocolVersion.highest ~= hello.version, hello.maxRequestsInFlight > 0 else {
          return (nil, 0, .violation("the hello's reply names version \(hello.version) or allows no request"))
        }
        return (hello, header.frameSize, nil)
      }
    }
    guard let hello = outcome.hello else { return outcome.end }
    reading.input.consume(outcome.size)
    reading.isGreeted = true
    let limits = ServerLimits(
      hello, maxFrameSize: configuration.maxFrameSize, largestCount: PendingTable<Caller>.largestCount)
    reading.maxFrameSize = limits.maxFrameSize
    let now = monotonicMilliseconds()
    let (admitted, incarnation) = state.withLock { state in
      state.link.greeted(now: now)
      state.limits = limits
      state.serverName = hello.name
      return (state.admit(), state.link.incarnation)
    }
    for caller in admitted { caller.resume(.proceed(Permit(incarnation: incarnation))) }
    return nil
  }
}
