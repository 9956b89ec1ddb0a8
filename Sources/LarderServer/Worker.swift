import Dispatch
import Platform

/// One of the server's workers: a serial queue with an event loop of its own.
///
/// The loop's epoll descriptor is watched by one DispatchSource. When that fires, the loop keeps the queue's thread and waits in epoll itself as
/// long as it has connections, which spares each wake-up the way through Dispatch; with none left it hands the thread back.
/// A worker lives until it has drained.
///
/// Safe because the loop is touched on `queue` only, and all else is constant.
final class Worker: @unchecked Sendable {
  private let queue: DispatchQueue
  private let mailbox: Mailbox
  private let source: any DispatchSourceRead
  private let drained = DispatchSemaphore(value: 0)
  private var loop: EventLoop

  init(index: Int, server: ServerState) throws(SystemError) {
    queue = DispatchQueue(label: "larder.worker.\(index)")
    mailbox = try Mailbox()
    let poll = try Poll()
    try poll.add(mailbox.descriptor, .reading, token: Mailbox.token)
    loop = EventLoop(server: server, metrics: server.workers[index], mailbox: mailbox, poll: poll)
    source = DispatchSource.makeReadSource(fileDescriptor: loop.descriptor, queue: queue)
    source.setEventHandler { [unowned self] in serve() }
    // The descriptors may only be closed once Dispatch watches them no more. Until then the source keeps the worker alive.
    source.setCancelHandler { [self] in drained.signal() }
    source.activate()
  }

  /// Hands a connected socket to the worker. From any thread.
  func adopt(_ socket: consuming Descriptor, from listener: Int) {
    mailbox.post(socket, from: listener)
  }

  /// Has the worker's thread answer when it comes to it. From any thread.
  func probe(_ answer: @escaping @Sendable () -> Void) {
    mailbox.post(answer)
  }

  /// Has the worker go by the server's limits and rules as they are now. From any thread.
  func changeLimits() {
    mailbox.postNewLimits()
  }

  /// Begins to finish what is in flight and close all connections. From any thread.
  func beginDrain() {
    mailbox.postDrain()
  }

  /// Waits until the drain has ended. Once.
  func waitUntilDrained() {
    drained.wait()
  }

  private func serve() {
    dispatchPrecondition(condition: .onQueue(queue))
    loop.runWhileConnected()
    if loop.hasDrained { source.cancel() }
  }
}
