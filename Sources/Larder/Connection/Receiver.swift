import Platform
import Wire

/// The receiving side of a connection: the bytes that have arrived and were not processed.
///
/// The thread that reads from the channel holds the lock that protects this value, and takes that of the connection's
/// state inside it.
struct Receiver: ~Copyable, Sendable {
  private var channel: SharedChannel?
  private var input = ByteBuffer()
  /// The minimum size of the frame at the beginning of `input`.
  private var neededBytes = 0
  /// The callers to resume, empty between two reads. A property to keep its memory.
  private var completions: [Completion<Caller>] = []
  private var maxFrameLength = 0
  /// Whether the server's hello has arrived.
  private(set) var isGreeted = false
  /// Why the connection is over, if a thread has found that it is.
  private(set) var closeReason: CloseReason?

  /// The bytes to read at once.
  private static var chunkSize: Int { 65_536 }
  /// The maximum length of the reply to the hello, whatever later versions of the protocol append to it.
  private static var maxHelloLength: Int { 131_072 }
  /// An input buffer above this size is released when it is empty.
  private static var maxIdleCapacity: Int { 1 << 20 }

  /// Begins to receive from a new channel.
  mutating func begin(_ channel: SharedChannel) {
    reset()
    self.channel = channel
    isGreeted = false
  }

  /// Forgets the channel and its bytes.
  mutating func reset() {
    channel = nil
    neededBytes = 0
    input.removeAll()
    closeReason = nil
  }

  /// Records why the connection is over. Other threads then find the same reason, and not that the server has closed
  /// the connection after the notice that says why.
  mutating func end(_ reason: CloseReason) { closeReason = reason }

  /// Whether this receives from a channel, and not from that of another connection.
  func receives(from channel: SharedChannel) -> Bool { self.channel === channel }

  /// The result of reading from the channel.
  enum ReadResult {
    /// Bytes arrived. There may be more.
    case received(mayHaveMore: Bool)
    case wouldBlock
    case ended(CloseReason)
  }

  mutating func read() -> ReadResult {
    guard let channel else { return .wouldBlock }
    // Memory grows with what has arrived, not with what a frame announces.
    let room = max(Self.chunkSize, min(neededBytes - input.count, input.count))
    let transfer = unsafe input.fill(room) { buffer -> (written: Int, result: ChannelTransfer) in
      let transfer = unsafe channel.receive(into: buffer)
      if case .moved(let count) = transfer { return (count, transfer) }
      return (0, transfer)
    }
    switch transfer {
    case .moved(0): return .ended(.disconnected("the server closed it"))
    case .moved(let count): return .received(mayHaveMore: count == room || channel.holdsInput)
    case .wouldBlock: return .wouldBlock
    case .failed(let error): return .ended(CloseReason(error))
    }
  }

  // MARK: The hello

  enum HelloResult {
    /// More bytes must arrive.
    case incomplete
    case hello(ServerHello)
    case failed(CloseReason)
  }

  /// Consumes the reply to the client's hello.
  /// - Parameters:
  ///   - id: The id of the client's hello.
  ///   - maxFrameLength: The maximum length of a frame that this client takes.
  mutating func readHello(id: UInt32, maxFrameLength: Int) -> HelloResult {
    let (result, size) = input.withSpan { Self.decodeHello($0, id: id) }
    guard case .hello(let hello) = result else { return result }
    input.consume(size)
    isGreeted = true
    self.maxFrameLength = min(Int(hello.maxFrameSize), maxFrameLength)
    return result
  }

  private static func decodeHello(_ bytes: RawSpan, id: UInt32) -> (result: HelloResult, size: Int) {
    switch FrameScan(bytes, at: 0, maxLength: maxHelloLength) {
    case .partial: return (.incomplete, 0)
    case .invalid(let length):
      let server = ForeignProtocol.server(sending: bytes).map { "it is \($0)" }
      return (.failed(.protocolViolation(server ?? "its first frame has the length \(length)")), 0)
    case .frame(let header):
      let body = bytes.extracting(header.body(at: 0))
      guard header.kind == Wire.Outcome.done.rawValue else {
        return (.failed(.notice(LarderError(frame: header, body: body))), 0)
      }
      guard header.id == id, let hello = ServerHello(body: body) else {
        return (.failed(.protocolViolation("the reply to the hello is malformed")), 0)
      }
      guard ProtocolVersion.min...ProtocolVersion.max ~= hello.version, hello.maxRequestsInFlight > 0 else {
        return (
          .failed(
            .protocolViolation("the reply to the hello names version \(hello.version), or doesn't allow requests")), 0
        )
      }
      return (.hello(hello), header.frameSize)
    }
  }

  // MARK: Replies

  /// Processes the replies that have arrived, and resumes their callers.
  /// - Parameter process: Passes the bytes to the connection's state.
  /// - Returns: What is left to do, and how the connection failed, if it did.
  mutating func processReplies(
    _ process: (RawSpan, Int, inout [Completion<Caller>]) -> (scan: ReplyScan, actions: ConnectionActions<Caller>)
  ) -> (actions: ConnectionActions<Caller>, failure: ConnectionFailure<Caller>?) {
    let (scan, actions) = input.withSpan { process($0, maxFrameLength, &completions) }
    let undecodable = resumeCallers()
    neededBytes = scan.neededBytes
    input.consume(scan.consumed)
    if input.isEmpty, input.capacity > Self.maxIdleCapacity { input.releaseStorage() }
    if let reason = scan.closeReason {
      return (actions, ConnectionFailure(reason: reason, undecodable: undecodable))
    }
    guard !undecodable.isEmpty else { return (actions, nil) }
    return (
      actions,
      ConnectionFailure(reason: .protocolViolation("the body of a reply is malformed"), undecodable: undecodable)
    )
  }

  /// Resumes the callers of the completions with their decoded replies.
  /// - Returns: The callers whose replies can't be decoded.
  private mutating func resumeCallers() -> [Caller] {
    var undecodable: [Caller] = []
    input.withSpan { bytes in
      for completion in completions {
        let body = bytes.extracting(completion.header.body(at: completion.offset))
        if let reply = CallResult.decode(completion.header, body, as: completion.form, stream: completion.stream) {
          completion.caller.resume(reply)
        } else {
          undecodable.append(completion.caller)
        }
      }
    }
    completions.removeAll(keepingCapacity: true)
    return undecodable
  }
}
