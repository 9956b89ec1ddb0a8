import Glibc
import Platform
import Testing
import Wire

@testable import Larder

/// Events of a connection, and the actions that its state returns, without any I/O.
@Suite struct ConnectionStateTests {
  /// A connection's state with a server that allows these numbers of requests in flight and open stores.
  private struct Peer: ~Copyable {
    var state: ConnectionState<Int>
    private let limits: NegotiatedLimits
    private var nextToken: UInt64 = 0

    init(requests: UInt32 = 10, stores: UInt16 = 2) throws {
      state = ConnectionState(address: .unix(path: "/test"), configuration: LarderClient.Configuration())
      let hello = ServerHello(
        maxFrameSize: 1 << 20, maxValueSize: 1 << 19, maxKeySize: 4_096, maxOpenStores: stores,
        maxRequestsInFlight: requests, maxKeyCount: 100, name: "peer")
      limits = NegotiatedLimits(hello, maxFrameSize: 1 << 20, maxRequests: 1_000)
      _ = state.channelState.requestConnection()
      _ = try connect(now: 0)
    }

    /// Connects, and returns the callers that are resumed by that.
    mutating func connect(now: UInt64) throws -> [Int] {
      guard case .connect(let incarnation, _) = state.nextAction(now: now) else { throw Unexpected() }
      let channel = unsafe SharedChannel(ByteChannel(Descriptor(owning: Glibc.open("/dev/null", O_RDWR))))
      guard state.channelState.attach(channel, incarnation: incarnation) else { throw Unexpected() }
      _ = state.channelState.connected()
      guard
        state.channelState.sendHello(ClientHello(credit: 1, name: "test"), id: .max).flushIncarnation == incarnation,
        sent().map(\.id) == [.max]
      else { throw Unexpected() }
      return state.helloReceived(limits, serverName: "peer", now: now).resumptions.map(\.caller)
    }

    /// Loses a connection that was stable, and returns the resumed callers.
    mutating func disconnect() -> [Int] {
      let failure = ConnectionFailure<Int>(reason: .disconnected("test"))
      return state.connectionLost(failure, now: 10_000).resumptions.map(\.caller)
    }

    struct Unexpected: Error {}

    mutating func submit<Q: ServerRequest>(
      _ request: Q, _ target: RequestTarget, as caller: Int, reservation: Reservation? = nil,
      isContinuation: Bool = false, isCancelled: Bool = false
    ) -> ConnectionActions<Int> {
      nextToken += 1
      let attempt = Attempt(
        caller: caller, token: nextToken, deadline: CallDeadline(timeout: 60_000), reservation: reservation,
        isContinuation: isContinuation)
      return state.submit(
        request, request.measure, target, attempt, isCancelled: isCancelled, defersFlush: false
      ).actions
    }

    /// Submits a get of a store, and returns the actions.
    mutating func get(_ store: UInt32, as caller: Int, reservation: Reservation? = nil) -> ConnectionActions<Int> {
      submit(GetRequest(key: "k"), .store(store), as: caller, reservation: reservation)
    }

    /// Opens a store as its caller does, and returns the frames that are sent.
    mutating func open(_ store: UInt32, handle: UInt16) throws -> [FrameHeader] {
      guard case .mustOpenStore = get(store, as: 0).resumptions.first?.reply else { throw Unexpected() }
      _ = submit(StoreOpenRequest(name: "store"), .opening(store), as: 0)
      let frames = sent()
      guard let request = frames.last, request.kind == Wire.Operation.storeOpen.rawValue else { throw Unexpected() }
      _ = reply(to: request.id) { $0.append(OpenedStore(handle: handle, engine: "memory")) }
      return frames
    }

    /// Writes the output, and returns the headers of its frames.
    mutating func sent() -> [FrameHeader] {
      var batch = ByteBuffer()
      var headers: [FrameHeader] = []
      while state.nextBatch(&batch, incarnation: state.channelState.incarnation).channel != nil {
        batch.withSpan { bytes in
          var offset = 0
          while case .frame(let header) = FrameScan(bytes, at: offset, maxLength: 1 << 20) {
            headers.append(header)
            offset += header.frameSize
          }
        }
        batch.removeAll()
      }
      return headers
    }

    /// Receives a reply, and returns the resumed callers: those of replies, then those of actions.
    mutating func reply(to id: UInt32, _ body: (inout ByteBuffer) -> Void) -> [Int] {
      var bytes = ByteBuffer()
      let start = bytes.beginReply(id: id)
      body(&bytes)
      bytes.endFrame(start)
      return receive(bytes)
    }

    /// Receives an error, and returns the resumed callers.
    mutating func fail(_ id: UInt32, _ code: ErrorCode) -> [Int] {
      var bytes = ByteBuffer()
      bytes.appendError(code, id: id)
      return receive(bytes)
    }

    private mutating func receive(_ bytes: borrowing ByteBuffer) -> [Int] {
      var completions: [Completion<Int>] = []
      let actions = bytes.withSpan {
        state.received($0, maxFrameLength: 1 << 20, now: 0, into: &completions).actions
      }
      return completions.map(\.caller) + actions.resumptions.map(\.caller)
    }
  }

  private func isRetry(_ reply: CallResult?) -> Bool { if case .retry = reply { true } else { false } }
  private func needsStore(_ reply: CallResult?) -> Bool { if case .mustOpenStore = reply { true } else { false } }

  @Test func `a request makes one thread the writer until everything is written`() throws {
    var peer = try Peer()
    let first = peer.submit(PingRequest(), .server, as: 1)
    #expect(first.flushIncarnation != nil && first.resumptions.isEmpty)
    #expect(peer.submit(PingRequest(), .server, as: 2).flushIncarnation == nil)
    #expect(peer.sent().count == 2)
    #expect(peer.submit(PingRequest(), .server, as: 3).flushIncarnation != nil)
  }

  @Test func `a writer that begins late does not write to the next connection`() throws {
    var peer = try Peer()
    let late = try #require(peer.submit(PingRequest(), .server, as: 1).flushIncarnation)
    #expect(peer.disconnect() == [1])
    _ = peer.submit(PingRequest(), .server, as: 2)
    #expect(try peer.connect(now: 10_000) == [2])
    let reservation = Reservation(incarnation: peer.state.channelState.incarnation)
    let current = peer.submit(PingRequest(), .server, as: 2, reservation: reservation)
    #expect(current.flushIncarnation != nil)
    var batch = ByteBuffer()
    #expect(peer.state.nextBatch(&batch, incarnation: late).channel == nil)
    #expect(batch.toArray().isEmpty)
    #expect(peer.sent().count == 1)
  }

  @Test func `calls beyond the requests in flight wait, and get a reservation each`() throws {
    var peer = try Peer(requests: 2)
    for caller in 1...4 { #expect(peer.submit(PingRequest(), .server, as: caller).resumptions.isEmpty) }
    let requests = peer.sent()
    #expect(requests.count == 2)
    #expect(peer.reply(to: requests[0].id) { _ in } == [1, 3])
    // The place belongs to caller 3 now: another call has to wait behind caller 4.
    _ = peer.submit(PingRequest(), .server, as: 5)
    #expect(peer.sent().isEmpty)
    #expect(peer.reply(to: requests[1].id) { _ in } == [2, 4])
  }

  @Test func `the first call opens the store, and the others wait for it`() throws {
    var peer = try Peer()
    #expect(needsStore(peer.get(7, as: 1).resumptions.first?.reply))
    #expect(peer.get(7, as: 2).resumptions.isEmpty)
    #expect(peer.sent().isEmpty)
    _ = peer.submit(StoreOpenRequest(name: "store"), .opening(7), as: 1)
    let opening = try #require(peer.sent().first)
    #expect(peer.reply(to: opening.id) { $0.append(OpenedStore(handle: 3, engine: "memory")) } == [1, 2])
    #expect(peer.get(7, as: 1).resumptions.isEmpty)
    #expect(peer.sent().map(\.detail) == [3])
  }

  @Test func `the least recently used store is closed for the next one`() throws {
    var peer = try Peer(stores: 2)
    #expect(try peer.open(100_000, handle: 1).count == 1)
    #expect(try peer.open(200_000, handle: 2).count == 1)
    _ = peer.get(100_000, as: 1)
    let get = try #require(peer.sent().first)
    _ = peer.reply(to: get.id) { _ in }
    let frames = try peer.open(300_000, handle: 2)
    #expect(frames.map(\.kind) == [Wire.Operation.storeClose.rawValue, Wire.Operation.storeOpen.rawValue])
    #expect(frames.first?.detail == 2)
    #expect(needsStore(peer.get(200_000, as: 1).resumptions.first?.reply))
  }

  @Test func `a call waits while all stores have requests, and is resumed when one is done`() throws {
    var peer = try Peer(stores: 2)
    for store in 1...2 as ClosedRange<UInt32> { _ = try peer.open(store, handle: UInt16(store)) }
    for store in 1...2 as ClosedRange<UInt32> { _ = peer.get(store, as: Int(store)) }
    let gets = peer.sent()
    #expect(gets.count == 2)
    #expect(peer.get(3, as: 3).resumptions.isEmpty)
    #expect(peer.sent().isEmpty)
    #expect(peer.reply(to: gets[0].id) { _ in } == [1, 3])
    let actions = peer.get(3, as: 3)
    #expect(needsStore(actions.resumptions.first?.reply) && actions.flushIncarnation != nil)
    #expect(peer.sent().map(\.detail) == [1])
  }

  @Test func `a call that waits for a store in vain says so when its deadline passes`() throws {
    var peer = try Peer(stores: 1)
    _ = try peer.open(1, handle: 1)
    _ = peer.get(1, as: 1)
    _ = peer.get(2, as: 2)
    let replies = peer.state.expire(now: monotonicMilliseconds() + 61_000).resumptions
    #expect(replies.map(\.caller) == [1, 2])
    let errors = replies.compactMap { if case .failed(let error, _) = $0.reply { error } else { nil } }
    #expect(errors.map(\.kind) == [.timedOut, .tooManyStores])
    #expect(errors.last?.outcome == .notExecuted)
  }

  @Test func `a lost connection says what was sent and what was not`() throws {
    var peer = try Peer()
    _ = peer.submit(PingRequest(), .server, as: 1)
    _ = peer.sent()
    _ = peer.submit(PingRequest(), .server, as: 2)
    let actions = peer.state.connectionLost(ConnectionFailure(reason: .disconnected("test")), now: 5)
    let outcomes = actions.resumptions.map { resumption -> LarderError.Outcome? in
      if case .failed(let error, .connectionLost) = resumption.reply { error.outcome } else { nil }
    }
    #expect(outcomes == [.unknown, .notExecuted])
    #expect(actions.interest != nil && actions.interest?.use == nil)
    let channel = peer.state.channelState.channel
    #expect(channel == nil)
  }

  @Test func `a reply that can't be decoded fails its call after the connection is closed`() throws {
    var peer = try Peer()
    let current = peer.state.channelState.channel
    let channel = try #require(current)
    let failure = ConnectionFailure(reason: .protocolViolation("test"), undecodable: [9])
    #expect(peer.state.readingFailed(from: channel, failure).resumptions.isEmpty)
    let actions = peer.state.connectionLost(ConnectionFailure(reason: .disconnected("test")), now: 5)
    #expect(actions.resumptions.map(\.caller) == [9])
  }

  @Test func `shutting down waits for the calls in progress and refuses others`() throws {
    var peer = try Peer()
    _ = peer.submit(PingRequest(), .server, as: 1)
    let ping = try #require(peer.sent().first)
    #expect(peer.state.drain(2).resumptions.isEmpty)
    guard case .failed(let error, _) = peer.submit(PingRequest(), .server, as: 3).resumptions.first?.reply else {
      Issue.record("the call was not refused")
      return
    }
    #expect(error.kind == .closed)
    #expect(peer.reply(to: ping.id) { _ in } == [1, 2])
  }

  @Test func `shutting down ends with the last call, even if that gives up before it is sent`() throws {
    var peer = try Peer(requests: 1)
    _ = peer.submit(PingRequest(), .server, as: 1)
    _ = peer.submit(PingRequest(), .server, as: 2)
    let ping = try #require(peer.sent().first)
    #expect(peer.state.drain(3).resumptions.isEmpty)
    // The place is reserved for caller 2, whose task is cancelled before it uses it.
    #expect(peer.reply(to: ping.id) { _ in } == [1, 2])
    let reservation = Reservation(incarnation: peer.state.channelState.incarnation)
    let actions = peer.submit(
      PingRequest(), .server, as: 2, reservation: reservation, isContinuation: true, isCancelled: true)
    #expect(actions.resumptions.map(\.caller) == [2, 3])
  }

  @Test func `shutting down ends when the calls that wait for a store have given up`() throws {
    var peer = try Peer()
    _ = peer.get(1, as: 1)
    _ = peer.submit(StoreOpenRequest(name: "store"), .opening(1), as: 1)
    _ = peer.get(1, as: 2)
    #expect(peer.state.drain(3).resumptions.isEmpty)
    #expect(peer.state.expire(now: monotonicMilliseconds() + 61_000).resumptions.map(\.caller) == [1, 2])
    let error = LarderError(.timedOut, outcome: .unknown, "")
    #expect(peer.state.openFailed(1, error).resumptions.map(\.caller) == [3])
  }

  @Test func `shutting down waits for the call that opens its store`() throws {
    var peer = try Peer()
    #expect(needsStore(peer.get(1, as: 1).resumptions.first?.reply))
    #expect(peer.state.drain(2).resumptions.isEmpty)
    #expect(
      peer.submit(StoreOpenRequest(name: "store"), .opening(1), as: 1, isContinuation: true).resumptions.isEmpty)
    let opening = try #require(peer.sent().first)
    #expect(peer.reply(to: opening.id) { $0.append(OpenedStore(handle: 1, engine: "memory")) } == [1])
    #expect(peer.submit(GetRequest(key: "k"), .store(1), as: 1, isContinuation: true).resumptions.isEmpty)
    let get = try #require(peer.sent().first)
    #expect(peer.reply(to: get.id) { _ in } == [1, 2])
  }

  @Test func `shutting down ends with a store that can't be opened`() throws {
    var peer = try Peer()
    _ = peer.get(1, as: 1)
    _ = peer.submit(StoreOpenRequest(name: "store"), .opening(1), as: 1)
    _ = peer.get(1, as: 2)
    let opening = try #require(peer.sent().first)
    #expect(peer.state.drain(3).resumptions.isEmpty)
    #expect(peer.fail(opening.id, .storeUnknown) == [1])
    let error = LarderError(.storeUnknown, outcome: .rejected, "")
    #expect(peer.state.openFailed(1, error).resumptions.map(\.caller) == [2, 3])
  }

  @Test func `a store that is opened again after a reconnection counts as open`() throws {
    var peer = try Peer(stores: 1)
    #expect(needsStore(peer.get(1, as: 1).resumptions.first?.reply))
    #expect(peer.disconnect().isEmpty)
    #expect(peer.submit(StoreOpenRequest(name: "store"), .opening(1), as: 1).resumptions.isEmpty)
    #expect(try peer.connect(now: 10_000) == [1])
    let reservation = Reservation(incarnation: peer.state.channelState.incarnation)
    _ = peer.submit(StoreOpenRequest(name: "store"), .opening(1), as: 1, reservation: reservation)
    let opening = try #require(peer.sent().first)
    // The only handle will be that of store 1.
    #expect(peer.get(2, as: 2).resumptions.isEmpty)
    #expect(peer.get(1, as: 3).resumptions.isEmpty)
    #expect(peer.sent().isEmpty)
    #expect(peer.reply(to: opening.id) { $0.append(OpenedStore(handle: 1, engine: "memory")) } == [1, 3])
  }

  @Test func `a store whose opener has given up counts as open until the server has replied`() throws {
    var peer = try Peer(stores: 1)
    _ = peer.get(1, as: 1)
    _ = peer.submit(StoreOpenRequest(name: "store"), .opening(1), as: 1)
    let opening = try #require(peer.sent().first)
    #expect(peer.state.cancel(2).resumptions.map(\.caller) == [1])
    _ = peer.state.openFailed(1, .callCancelled(.unknown))
    #expect(peer.get(2, as: 2).resumptions.isEmpty)
    #expect(peer.sent().isEmpty)
    #expect(peer.fail(opening.id, .storeUnknown) == [2])
    #expect(needsStore(peer.get(2, as: 2).resumptions.first?.reply))
  }
}
