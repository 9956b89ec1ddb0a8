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

  /// A connection whose handshake is done. The worker takes its channel, once.
  ///
  /// Safe because one thread after the other uses it.
  final class Arrival: @unchecked Sendable {
    /// The number of the listener that accepted it.
    let listener: Int
    /// What serves its requests.
    let session: any Session
    private var channel: ByteChannel?

    fileprivate init(_ channel: consuming ByteChannel, from listener: Int, _ session: any Session) {
      self.channel = consume channel
      self.listener = listener
      self.session = session
    }

    func takeChannel() -> ByteChannel {
      guard let channel = channel.take() else { preconditionFailure("the channel was taken before") }
      return channel
    }
  }

  /// What has been posted.
  struct Contents {
    /// The connections that now belong to the reader.
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

  /// Readable while something has been posted and not read.
  var descriptor: Int32 { wakeup.descriptor.number }

  /// Hands over a connection.
  func post(_ channel: consuming ByteChannel, from listener: Int, _ session: any Session) {
    let arrival = Arrival(channel, from: listener, session)
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
