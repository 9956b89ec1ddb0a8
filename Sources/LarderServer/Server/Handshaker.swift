import Dispatch
import Platform
import Synchronization

/// Completes the handshakes of new connections whose channels have a layer, and hands them to their workers. It has a
/// thread of its own, because a handshake takes as long as hundreds of requests, and established connections must not
/// wait for it.
///
/// Its limits are those of strangers: they have `helloTimeout`, and if there are too many, the address that has most of
/// them loses its oldest.
///
/// Safe because everything that changes is used only on `queue`.
final class Handshaker: @unchecked Sendable {
  private let server: ServerState
  private let poll: Poll
  private let source: any DispatchSourceRead
  private let closed = DispatchSemaphore(value: 0)
  private var handshakes: [UInt64: Handshake] = [:]
  private var order = HandshakeQueue()
  private var lastToken: UInt64 = 0
  private var events = Poll.Events(capacity: 64)
  /// When the next sweep runs, in milliseconds; nil if none is scheduled.
  private var nextSweep: UInt64?
  private var hasStopped = false

  private let queue = DispatchQueue(label: "larder.handshaker")
  /// The size of the room for input that is discarded.
  private static let discardRoomBytes = 4 << 10

  /// A connection that is not established yet.
  ///
  /// Safe because only the thread that has made it uses it, and then only `queue`.
  private final class Handshake: @unchecked Sendable {
    var channel: ByteChannel?
    let peer: Peer
    /// The number of the listener that accepted it.
    let listener: Int
    let adopt: (consuming ByteChannel) -> Void
    var deadline: UInt64
    var interest: Poll.Interest
    /// Whether it has failed. The client gets to read why.
    var isEnding = false

    init(
      _ channel: consuming ByteChannel, listener: Int, deadline: UInt64,
      adopt: @escaping (consuming ByteChannel) -> Void
    ) {
      peer = Socket.peer(of: channel.socket)
      self.listener = listener
      interest = channel.events.receiving
      self.channel = consume channel
      self.deadline = deadline
      self.adopt = adopt
    }

    var socket: Int32 { channel?.socket.number ?? -1 }
  }

  init(_ server: ServerState) throws(SystemError) {
    self.server = server
    poll = try Poll()
    source = DispatchSource.makeReadSource(fileDescriptor: poll.descriptor.number, queue: queue)
    source.setEventHandler { [unowned self] in serve() }
    // The descriptor must not be closed while Dispatch monitors it.
    source.setCancelHandler { [self] in closed.signal() }
    source.activate()
  }

  /// Begins the handshake of a connection.
  /// - Parameters:
  ///   - listener: The number of the listener that accepted it.
  ///   - adopt: Takes the channel when the handshake is done. Not called if it fails.
  func begin(
    _ channel: consuming ByteChannel, from listener: Int,
    adopt: @escaping @Sendable (consuming ByteChannel) -> Void
  ) {
    let handshake = Handshake(
      channel, listener: listener, deadline: monotonicMilliseconds() + server.limits.helloTimeout.wholeMilliseconds,
      adopt: adopt)
    queue.async { [self] in add(handshake) }
  }

  /// Ends all handshakes. Call it once, after the last `begin`.
  func stop() {
    queue.async { [self] in
      hasStopped = true
      for token in Array(handshakes.keys) { remove(token) }
      source.cancel()
    }
    closed.wait()
  }

  /// Makes the handshaker's thread call `respond` after what it is doing.
  func probe(_ respond: @escaping @Sendable () -> Void) { queue.async(execute: respond) }

  // MARK: On the queue

  private func add(_ handshake: Handshake) {
    if hasStopped { return drop(handshake) }
    makeRoom()
    lastToken += 1
    do throws(SystemError) { try poll.add(handshake.socket, handshake.interest, token: lastToken) } catch {
      // The client sees its connection end, and tries again later.
      return drop(handshake)
    }
    handshakes[lastToken] = handshake
    order.add(lastToken, from: handshake.peer.origin)
    server.handshakes.setOpen(handshakes.count)
    schedule(handshake.deadline)
    advance(lastToken, handshake)
  }

  private func drop(_ handshake: Handshake) {
    handshake.channel = nil
    server.connectionCount.remove(from: handshake.peer.origin)
  }

  /// Ends the oldest handshake of the address that has most of them, if there are too many.
  private func makeRoom() {
    guard handshakes.count >= server.limits.handshakes,
      let victim = order.oldestOfMost(isOpen: { handshakes[$0] != nil })
    else { return }
    server.handshakes.wasRefused()
    remove(victim)
  }

  private func serve() {
    let count = poll.wait(timeoutMilliseconds: 0, into: &events)
    for index in 0..<count {
      let event = events[index]
      guard let handshake = handshakes[event.token] else { continue }
      advance(event.token, handshake)
      if event.hasHungUp, handshakes[event.token] != nil { remove(event.token) }
    }
  }

  private func advance(_ token: UInt64, _ handshake: Handshake) {
    let progress = handshake.isEnding ? end(handshake) : handshake.channel?.continueHandshake() ?? .done
    switch progress {
    case .waiting: updateInterest(of: handshake, token)
    case .done where handshake.isEnding: remove(token)
    case .done:
      poll.remove(handshake.socket)
      forget(token, handshake)
      server.handshakes.didSucceed()
      if let channel = handshake.channel.take() { handshake.adopt(channel) }
    case .failed(let error) where !handshake.isEnding:
      didFail(handshake, "\(error)")
      handshake.isEnding = true
      handshake.deadline = min(handshake.deadline, monotonicMilliseconds() + ConnectionTimeout.lingerMilliseconds)
      schedule(handshake.deadline)
      advance(token, handshake)
    case .failed: remove(token)
    }
  }

  /// Ends the sending side of a channel that has failed, and discards what arrives until the client closes it.
  /// - Returns: Whether that is done.
  private func end(_ handshake: Handshake) -> ChannelProgress {
    guard let progress = handshake.channel?.shutdownSending(), progress != .waiting else { return .waiting }
    return unsafe withUnsafeTemporaryAllocation(byteCount: Self.discardRoomBytes, alignment: 1) { room in
      for _ in 0..<16 {
        guard let transfer = unsafe handshake.channel?.discard(using: room) else { return .done }
        switch transfer {
        case .wouldBlock: return .waiting
        case .moved(0), .failed: return .done
        case .moved: continue
        }
      }
      return .waiting
    }
  }

  private func didFail(_ handshake: Handshake, _ reason: String) {
    server.handshakes.didFail()
    server.accessControl.refuseHandshake(with: handshake.peer, listener: handshake.listener, reason)
  }

  private func updateInterest(of handshake: Handshake, _ token: UInt64) {
    guard let interest = handshake.channel?.events.receiving, interest != handshake.interest else { return }
    handshake.interest = interest
    poll.change(handshake.socket, interest, token: token)
  }

  private func remove(_ token: UInt64) {
    guard let handshake = handshakes[token] else { return }
    poll.remove(handshake.socket)
    forget(token, handshake)
    drop(handshake)
  }

  private func forget(_ token: UInt64, _ handshake: Handshake) {
    handshakes[token] = nil
    server.handshakes.setOpen(handshakes.count)
    order.remove(from: handshake.peer.origin, isOpen: { handshakes[$0] != nil })
  }

  // MARK: Timeouts

  private func schedule(_ deadline: UInt64) {
    if let nextSweep, nextSweep <= deadline { return }
    nextSweep = deadline
    let now = monotonicMilliseconds()
    let delay = DispatchTimeInterval.milliseconds(Int(deadline > now ? deadline - now : 0))
    queue.asyncAfter(deadline: .now() + delay) { [weak self] in self?.sweep(scheduledFor: deadline) }
  }

  private func sweep(scheduledFor deadline: UInt64) {
    // An earlier one was scheduled later.
    guard nextSweep == deadline else { return }
    nextSweep = nil
    let now = monotonicMilliseconds()
    for (token, handshake) in handshakes where handshake.deadline <= now {
      if !handshake.isEnding { didFail(handshake, "the handshake took longer than \(server.limits.helloTimeout)") }
      remove(token)
    }
    if let next = handshakes.values.map(\.deadline).min() { schedule(next) }
  }
}

/// The numbers of handshakes, for metrics. Used by any thread.
final class HandshakeCounts: Sendable {
  private let openCount = Atomic<Int>(0)
  private let doneCount = Atomic<UInt64>(0)
  private let failedCount = Atomic<UInt64>(0)
  private let refusedCount = Atomic<UInt64>(0)

  /// Those under way.
  var open: UInt64 { UInt64(openCount.load(ordering: .relaxed)) }
  /// Those that have succeeded.
  var done: UInt64 { doneCount.load(ordering: .relaxed) }
  /// Those that have failed or taken too long.
  var failed: UInt64 { failedCount.load(ordering: .relaxed) }
  /// Those that had to make room for others.
  var refused: UInt64 { refusedCount.load(ordering: .relaxed) }

  fileprivate func setOpen(_ count: Int) { openCount.store(count, ordering: .relaxed) }
  fileprivate func didSucceed() { doneCount.add(1, ordering: .relaxed) }
  fileprivate func didFail() { failedCount.add(1, ordering: .relaxed) }
  fileprivate func wasRefused() { refusedCount.add(1, ordering: .relaxed) }
}
