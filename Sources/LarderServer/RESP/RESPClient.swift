import Storage
import Wire

/// What a connection keeps for a client that speaks RESP. Owned by one `Connection`, and used by its worker.
final class RESPClient: @unchecked Sendable {
  let channels: RESPChannels
  let scripts: RESPScripts
  private let mailbox: Mailbox
  var version = RESPVersion.two { didSet { versionDidChange() } }
  /// The selected database.
  var database = 0
  var name = ""
  var libraryName = ""
  var libraryVersion = ""
  /// The transaction that has begun; nil if there is none.
  private(set) var transaction: RESPTransaction? { didSet { updateRestriction() } }
  /// Whether some requests are queued or refused, because of a transaction or of subscriptions.
  ///
  /// Every request reads it, and a checked access takes longer than a short command. Safe because one worker uses it.
  @exclusivity(unchecked)
  private(set) var isRestricted = false
  private var subscriptions: Set<RESPSubscription> = []
  private var subscriptionBytes = 0
  /// The maximum size of its subscriptions, in bytes, each counted as `RESPSubscription.byteCount`.
  static let maxSubscriptionBytes = 1 << 20
  /// The messages for it; nil if it has never subscribed.
  private(set) var inbox: RESPInbox?
  private(set) var watchedKeys: [RESPWatchedKey] = []
  private var watchedBytes = 0
  /// The maximum size of the watched keys, in bytes, each counted with 64 more.
  static let maxWatchedBytes = 1 << 20
  /// The keys that a KEYS command has found so far; nil if none is at work.
  private var keySearch: RESPKeySearch?
  /// For values that are computed.
  var scratch = ByteBuffer()
  /// The memory for computed values that is kept for the next request, in bytes.
  private static let maxKeptBytes = 4 << 10

  /// What the transaction, the watched keys and the subscriptions take.
  private var memory: InputMemory

  init(_ server: ServerState, _ mailbox: Mailbox, _ sharer: ConnectionSharer) {
    (channels, scripts, self.mailbox) = (server.channels, server.scripts, mailbox)
    memory = InputMemory(server.buffers, sharer) { mailbox.postRevokedShare() }
  }

  deinit { removeSubscriptions() }

  /// Frees the memory for computed values if it is large.
  @inline(__always)
  func releaseLargeScratch() {
    if scratch.capacity > Self.maxKeptBytes { scratch.releaseStorage() }
  }

  /// Returns to the state of a new connection.
  func reset() {
    removeSubscriptions()
    (version, database, name) = (.two, 0, "")
    discardTransaction()
  }

  // MARK: Memory

  /// Whether other clients need the memory of what is kept for this one.
  var hasLostMemory: Bool { memory.isRevoked }

  /// Takes memory for what is added next.
  private func reserve(_ byteCount: Int) throws(RESPFailure) {
    do throws(InputShortage) { try memory.grow(by: byteCount) } catch { throw .error("TRYAGAIN \(error.reason)") }
  }

  /// Gives back the memory of what was removed.
  private func releaseMemory() {
    memory.shrink(to: (transaction?.requests.count ?? 0) + watchedBytes + subscriptionBytes)
  }

  // MARK: Transactions

  func beginTransaction() { transaction = RESPTransaction() }

  /// Adds a request to the transaction.
  func queue(_ request: RESPRequest, _ bytes: RawSpan, maxByteCount: Int) throws(RESPFailure) {
    guard (transaction?.requests.count ?? 0) + bytes.byteCount <= maxByteCount else {
      throw .error("ERR a transaction has at most \(maxByteCount) bytes, limits.frame-bytes")
    }
    try reserve(bytes.byteCount)
    transaction?.add(request, bytes)
  }

  func discardTransaction() {
    transaction = nil
    unwatch()
  }

  func watch(_ key: RESPWatchedKey) throws(RESPFailure) {
    guard watchedBytes + key.byteCount <= Self.maxWatchedBytes else {
      throw .error("ERR a client watches at most \(Self.maxWatchedBytes) bytes of keys")
    }
    try reserve(key.byteCount)
    watchedBytes += key.byteCount
    watchedKeys.append(key)
  }

  func unwatch() {
    (watchedKeys, watchedBytes) = ([], 0)
    releaseMemory()
  }

  /// Removes and returns the search for keys that is at work, or a new one.
  func takeKeySearch() -> RESPKeySearch { keySearch.take() ?? RESPKeySearch() }

  func keepKeySearch(_ search: consuming RESPKeySearch) { keySearch = consume search }

  /// Lets EXEC fail, because a command was refused.
  func abortTransaction() { transaction?.isAborted = true }

  private func updateRestriction() { unsafe isRestricted = transaction != nil || isSubscribedOnly }

  private func versionDidChange() {
    inbox?.setVersion(version)
    updateRestriction()
  }

  // MARK: Subscriptions

  var subscriptionCount: Int { subscriptions.count }

  /// Whether it may only change its subscriptions, because it can't tell replies from messages.
  var isSubscribedOnly: Bool { version == .two && !subscriptions.isEmpty }

  /// Its subscriptions of a kind, sorted by name.
  func subscriptions(_ kind: RESPSubscription.Kind) -> [RESPSubscription] {
    subscriptions.filter { $0.kind == kind }.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// Adds subscriptions, unless they are too many, and calls `body` after each.
  /// - Parameter connection: The client's.
  func subscribe(
    _ added: [RESPSubscription], of connection: ConnectionToken, _ body: (RESPSubscription) -> Void
  ) throws(RESPFailure) {
    let byteCount = Set(added).subtracting(subscriptions).reduce(0) { $0 + $1.byteCount }
    guard subscriptionBytes + byteCount <= Self.maxSubscriptionBytes else {
      throw .error("ERR a client has at most \(Self.maxSubscriptionBytes) bytes of subscriptions")
    }
    try reserve(byteCount)
    subscriptionBytes += byteCount
    let inbox = inbox ?? RESPInbox(version, of: connection, mailbox, channels)
    self.inbox = inbox
    for subscription in added {
      subscriptions.insert(subscription)
      channels.add(subscription, inbox)
      body(subscription)
    }
    updateRestriction()
  }

  /// Removes a subscription, if it is there.
  /// - Returns: The number of those that are left.
  func unsubscribe(_ subscription: RESPSubscription) -> Int {
    if let inbox, let subscription = subscriptions.remove(subscription) {
      channels.remove(subscription, inbox)
      subscriptionBytes -= subscription.byteCount
      releaseMemory()
      updateRestriction()
    }
    return subscriptions.count
  }

  private func removeSubscriptions() {
    guard let inbox else { return }
    for subscription in subscriptions { channels.remove(subscription, inbox) }
    (subscriptions, subscriptionBytes) = ([], 0)
    self.inbox = nil
    releaseMemory()
  }
}

extension Connection {
  /// What is kept for a client that speaks RESP. Mutating, because a call that only borrows the connection copies it.
  var respClient: RESPClient {
    mutating get {
      guard let clientState else { preconditionFailure("a client that speaks RESP has its state") }
      return unsafe unsafeDowncast(clientState, to: RESPClient.self)
    }
  }
}

/// The commands between MULTI and EXEC.
struct RESPTransaction {
  /// The requests, one after the other.
  private(set) var requests: [UInt8] = []
  private(set) var count = 0
  /// The number of requests that change entries.
  private(set) var writeCount = 0
  /// The number of puts that are refused when a store is full, and the size of their requests.
  private(set) var putCount = 0
  private(set) var putByteCount = 0
  /// Whether a command was refused.
  fileprivate(set) var isAborted = false

  fileprivate mutating func add(_ request: RESPRequest, _ bytes: RawSpan) {
    unsafe bytes.withUnsafeBytes { unsafe requests.append(contentsOf: $0) }
    count += 1
    if request.isWrite { writeCount += 1 }
    guard request.putCount > 0 else { return }
    putCount += request.putCount
    putByteCount += bytes.byteCount
  }

  /// Checks whether the transaction would be refused now if another request were added.
  func checkRoom(for request: RESPRequest, _ map: inout EntryMap) throws(StorageError) {
    guard request.putCount > 0 else {
      return request.isWrite ? try map.checkCommit(operations: 1, bytes: request.size, isRemoval: true) : ()
    }
    try map.checkRoom(
      records: putCount + request.putCount, bytes: putByteCount + request.size, last: request.size / request.putCount)
  }

  /// Reserves what its changes need.
  func reserveRoom(_ map: inout EntryMap) throws(StorageError) {
    if putCount > 0 { try map.reserve(records: putCount, bytes: putByteCount) }
    if writeCount > 0 {
      try map.checkCommit(operations: writeCount, bytes: requests.count, isRemoval: putCount == 0)
    }
  }
}

/// A key that must not change before the transaction.
struct RESPWatchedKey {
  let store: Store
  let key: [UInt8]
  /// The revision of its entry; nil if there is none.
  let revision: UInt64?

  /// What it counts as when watched keys are limited, in bytes.
  var byteCount: Int { key.count + 64 }
}

/// A search for keys that match a pattern, which is made in slices.
struct RESPKeySearch: ~Copyable {
  /// The keys, as parts of the reply.
  var found = ByteBuffer()
  var count = 0
  /// The last key that was looked at; empty at the beginning.
  var last: [UInt8] = []
}
