import Platform
import Storage

/// What other threads ask of a worker. Any thread posts, which wakes the worker; only the worker reads.
final class Mailbox: Sendable {
  /// The token of the mailbox's descriptor in epoll events.
  static let token = UInt64.max

  private let wakeup: Wakeup
  private let contents = Lock(Contents())
  private let worker = Lock(WorkerReference())

  /// Weak, because the worker owns the mailbox.
  private struct WorkerReference: Sendable {
    weak var sender: (any HeldReplySender)?
  }

  /// A connected socket. The worker makes its channel, once, and owns the channel.
  struct Arrival {
    /// The number of the listener that accepted it.
    let listener: Int
    /// The protocol that the client speaks.
    let served: ListenerProtocol
    fileprivate let socket: Int32

    func makeChannel() -> ByteChannel { ByteChannel(Descriptor(owning: socket), layer: served.makeLayer()) }
  }

  /// What has been posted.
  struct Contents {
    /// The sockets that now belong to the reader.
    fileprivate(set) var arrivals: [Arrival] = []
    /// What the reader must call.
    fileprivate(set) var probes: [@Sendable () -> Void] = []
    /// Whether the server's limits or access rules have changed.
    fileprivate(set) var hasNewLimits = false
    /// Whether the worker has been asked to stop, now or earlier.
    fileprivate(set) var mustDrain = false
    /// The watched stores that have changed.
    fileprivate(set) var changedStores: [ObjectIdentifier] = []
    /// Whether stores were dropped.
    fileprivate(set) var hasDroppedStores = false
    /// Whether connections have to give up some of what they use to other clients.
    fileprivate(set) var hasRevokedShares = false
    /// The jobs that have an outcome.
    fileprivate(set) var endedJobs: [DocumentJob] = []
    /// The pauses that have ended.
    fileprivate(set) var endedPauses: [PauseToken] = []
    /// The connections for which there are messages.
    fileprivate(set) var connectionsWithMessages: [ConnectionToken] = []
  }

  init() throws(SystemError) {
    wakeup = try Wakeup()
  }

  deinit {
    for arrival in contents.withLock({ $0.arrivals }) { _ = Descriptor(owning: arrival.socket) }
  }

  /// Readable while something has been posted and not read.
  var descriptor: Int32 { wakeup.descriptor.number }

  /// Hands over a connected socket.
  func post(_ socket: consuming Descriptor, from listener: Int, _ served: ListenerProtocol) {
    let arrival = Arrival(listener: listener, served: served, socket: socket.release())
    contents.withLock { $0.arrivals.append(arrival) }
    wakeup.signal()
  }

  /// Makes the worker call `respond`.
  func post(probe respond: @escaping @Sendable () -> Void) {
    contents.withLock { $0.probes.append(respond) }
    wakeup.signal()
  }

  /// Reports that the server's limits or access rules have changed.
  func postNewLimits() {
    contents.withLock { $0.hasNewLimits = true }
    wakeup.signal()
  }

  /// Asks the worker to stop.
  func postDrain() {
    contents.withLock { $0.mustDrain = true }
    wakeup.signal()
  }

  /// Reports changes in a store.
  func post(changedStore store: ObjectIdentifier) {
    contents.withLock { contents in
      if !contents.changedStores.contains(store) { contents.changedStores.append(store) }
    }
    wakeup.signal()
  }

  /// Reports that a store was dropped.
  func postDroppedStore() {
    contents.withLock { $0.hasDroppedStores = true }
    wakeup.signal()
  }

  /// Reports that a connection has to give up a `Share` to another client.
  func postRevokedShare() {
    contents.withLock { $0.hasRevokedShares = true }
    wakeup.signal()
  }

  /// Reports that a job has an outcome.
  func post(endedJob job: DocumentJob) {
    contents.withLock { $0.endedJobs.append(job) }
    wakeup.signal()
  }

  /// Reports the end of what a connection has waited for.
  func post(endOf pause: PauseToken) {
    contents.withLock { $0.endedPauses.append(pause) }
    wakeup.signal()
  }

  /// Reports that there are messages for a connection.
  func post(messagesFor connection: ConnectionToken) {
    contents.withLock { $0.connectionsWithMessages.append(connection) }
    wakeup.signal()
  }

  /// Sets the worker, which may be spared a wakeup when commits have become durable.
  func setWorker(_ worker: any HeldReplySender) { self.worker.withLock { $0.sender = worker } }

  /// Removes and returns what has been posted.
  func read() -> Contents {
    wakeup.clear()
    return contents.withLock { contents in
      let posted = contents
      contents = Contents(mustDrain: posted.mustDrain)
      return posted
    }
  }
}

extension Mailbox: DurabilityWaiter {
  func durabilityDidAdvance() {
    let worker = worker.withLock { $0.sender }
    if worker?.sendFewHeldReplies() != true { wakeup.signal() }
  }
}

/// A worker, as a commit thread sees it.
protocol HeldReplySender: AnyObject, Sendable {
  /// Sends the replies whose commits are durable on the calling thread, if the worker is not busy and they are few.
  /// - Returns: whether the worker need not wake up.
  func sendFewHeldReplies() -> Bool
}
