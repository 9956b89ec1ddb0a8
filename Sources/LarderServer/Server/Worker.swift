import Dispatch
import Platform

/// One of the server's workers: a serial queue with an event loop of its own.
///
/// A DispatchSource monitors the loop's epoll descriptor. When it fires, the loop keeps the queue's thread and waits in
/// epoll itself as long as it has connections, which saves each wakeup a detour through Dispatch; with no connection
/// left it returns the thread. A worker lives until it has drained.
///
/// The loop is behind a lock, because a commit thread that has made commits durable sends the few replies that wait for
/// them itself, if the worker is not busy meanwhile. It never waits for the lock; a worker waits for it only as long as
/// these replies take.
///
/// Safe because everything besides the lock is constant.
final class Worker: @unchecked Sendable {
  private let queue: DispatchQueue
  private let mailbox: Mailbox
  private let source: any DispatchSourceRead
  private let drained = DispatchSemaphore(value: 0)
  private let poll: Poll.Waiter
  private let room: Lock<Room>

  /// The event loop, and what it serves.
  private struct Room: ~Copyable {
    var loop: EventLoop
    var connections = WorkerConnections()

    var hasDrained: Bool { loop.isDraining && connections.isEmpty }

    mutating func serve(_ events: borrowing Poll.Events, count: Int) -> Int32? {
      loop.serve(events, count: count, &connections)
    }

    mutating func sendFewHeldReplies() -> Bool { loop.sendFewHeldReplies(&connections) }
  }

  init(index: Int, server: ServerState) throws(SystemError) {
    queue = DispatchQueue(label: "larder.worker.\(index)")
    mailbox = try Mailbox()
    server.add(mailbox)
    let poll = try Poll()
    try poll.add(mailbox.descriptor, .reading, token: Mailbox.token)
    self.poll = poll.waiter
    source = DispatchSource.makeReadSource(fileDescriptor: poll.descriptor.number, queue: queue)
    room = Lock(
      Room(loop: EventLoop(server: server, metrics: server.workers[index], mailbox: mailbox, poll: poll)))
    source.setEventHandler { [unowned self] in serve() }
    // The descriptors must not be closed while Dispatch monitors them. Until it stops, the source keeps the worker
    // alive.
    source.setCancelHandler { [self] in drained.signal() }
    mailbox.setWorker(self)
    source.activate()
  }

  /// Hands a connection to the worker. From any thread.
  func adopt(_ channel: consuming ByteChannel, from listener: Int, _ session: any Session) {
    mailbox.post(channel, from: listener, session)
  }

  /// Makes the worker's thread call `respond` after what it is doing. From any thread.
  func probe(_ respond: @escaping @Sendable () -> Void) {
    mailbox.post(probe: respond)
  }

  /// Makes the worker adopt the server's current limits and access rules. From any thread.
  func updateLimits() {
    mailbox.postNewLimits()
  }

  /// Begins to finish what is in flight and to close all connections. From any thread.
  func beginDrain() {
    mailbox.postDrain()
  }

  /// Waits until the worker has drained. Call it once.
  func waitUntilDrained() {
    drained.wait()
  }

  private func serve() {
    dispatchPrecondition(condition: .onQueue(queue))
    // Jobs and commits of other threads must not delay it.
    TimeSlice.request(isShort: true)
    defer { TimeSlice.request(isShort: false) }
    var events = Poll.Events(capacity: 256)
    var waitMilliseconds: Int32? = 0
    let lockedRoom = unsafe room.lockedValue
    while let timeout = waitMilliseconds {
      let count = poll.wait(timeoutMilliseconds: timeout, into: &events)
      room.lock()
      waitMilliseconds = unsafe lockedRoom.pointee.serve(events, count: count)
      room.unlock()
    }
    room.lock()
    let hasDrained = unsafe lockedRoom.pointee.hasDrained
    room.unlock()
    if hasDrained { source.cancel() }
  }
}

extension Worker: HeldReplySender {
  func sendFewHeldReplies() -> Bool {
    guard room.tryLock() else { return false }
    defer { room.unlock() }
    let lockedRoom = unsafe room.lockedValue
    return unsafe lockedRoom.pointee.sendFewHeldReplies()
  }
}
