import Basics
import Wire

/// A store of a server. A value that is cheap to copy and safe to use from any task; it keeps its client's connections
/// open.
///
/// Calls throw `LarderError`: `storeUnknown` if the server has no such store; `keyInvalid` if a key is empty or longer
/// than the server allows (4,096 bytes); `valueTooLarge` if a value exceeds the server's limit; `timedOut`,
/// `connectFailed` or `disconnected` if the server can't be reached; `tooManyStores` if calls use more stores at the
/// same time than the server lets a connection open; and `cancelled` if the task is cancelled. The error's `outcome`
/// says what is known about the request.
public struct RemoteStore: Sendable {
  let core: ClientCore
  private let reference: StoreReference
  private let timeout: UInt64
  /// How long requests on documents may take at the server, in milliseconds; nil for the server's default.
  let findTime: UInt32?

  init(_ core: ClientCore, _ reference: StoreReference, timeout: UInt64, findTime: UInt32? = nil) {
    self.core = core
    self.reference = reference
    self.timeout = timeout
    self.findTime = findTime
  }

  public var name: String { reference.name }

  /// Returns the same store with another timeout for its calls. It covers connecting, waiting for earlier requests, and
  /// the reply.
  public func with(timeout: Duration) -> RemoteStore {
    RemoteStore(core, reference, timeout: timeout.wholeMilliseconds, findTime: findTime)
  }

  /// Returns the same store, where each find, count, grouping, update and deletion by selector may take this long at the
  /// server, rather than as long as the server allows by default (2 seconds, unless it is configured otherwise).
  ///
  ///     let groups = try await store.with(findTime: .seconds(30)).groups(by: ["pet.species"])
  ///
  /// The server has a maximum (one minute, unless it is configured otherwise), and allows no more. Time in which it
  /// works for others does not count. The timeout of these calls grows by this time. A server that does not know such
  /// times rejects updates and deletions with `unknownOperation`; for the others, it sends all entries to the client.
  /// - Parameter findTime: At least a millisecond.
  public func with(findTime: Duration) -> RemoteStore {
    let milliseconds = UInt32(clamping: max(1, findTime.wholeMilliseconds))
    return RemoteStore(core, reference, timeout: timeout, findTime: milliseconds)
  }

  /// Returns the same store for reads that may be old: any server that shares the store answers them from what it has, if
  /// that has everything that was acknowledged up to `maxStaleness` ago. Reads of one key, of all, finds, watches and so on
  /// work as usual; a watch shows changes a moment after they were made. Make writes with the store that it was called on.
  ///
  ///     let recent = orders.with(maxStaleness: .seconds(5))
  ///     let open = try await recent.find(.field("open", .equal(true))).result()
  ///
  /// The figure `staleness_milliseconds` in `stats()` is how old the store can be at the server that answers; the server
  /// that serves the store lacks it. Below half a second, few reads are answered by other servers.
  ///
  /// A client of several servers chooses one of them at random, and asks the next one while that is too far behind. A read
  /// can be older than the client's own last write, and than an earlier read that another server has answered.
  /// - Parameter maxStaleness: 0 to 49 days. Servers may be a little stricter.
  public func with(maxStaleness: Duration) -> RemoteStore {
    let milliseconds = UInt32(clamping: maxStaleness.wholeMilliseconds)
    return RemoteStore(
      core, core.store(name, maxStaleness: milliseconds), timeout: timeout, findTime: findTime)
  }

  // MARK: Calls

  /// The deadline of a call that begins now.
  var deadline: CallDeadline { CallDeadline(timeout: timeout) }

  /// The deadline of a request on documents that is made now.
  var findDeadline: CallDeadline {
    CallDeadline(timeout: timeout == 0 ? 0 : timeout + UInt64(findTime ?? 0))
  }

  /// Makes a call.
  /// - Returns: A reply of the request's form.
  @inline(__always)
  func call<Q: ServerRequest>(_ request: Q) async throws(LarderError) -> CallResult {
    try await call(request, deadline: deadline)
  }

  /// Makes a call with a deadline of its own.
  @inline(__always)
  func call<Q: ServerRequest>(_ request: Q, deadline: CallDeadline) async throws(LarderError) -> CallResult {
    let (reply, _) = await core.reply(
      to: request, store: reference, deadline: deadline, isLong: request.mayTakeLong)
    if case .failed(let error, _) = reply { throw error }
    return reply
  }

  /// Makes a call that has to be made on a certain connection.
  func call<Q: ServerRequest>(_ request: Q, on connection: ServerConnection) async throws(LarderError) -> CallResult {
    try await connection.call(request, store: reference, deadline: deadline)
  }

  /// Makes a call after which others have to be made on the same connection.
  func callAnywhere<Q: ServerRequest>(
    _ request: Q
  ) async throws(LarderError) -> (reply: CallResult, connection: ServerConnection) {
    let (reply, connection) = await core.reply(to: request, store: reference, deadline: deadline)
    if case .failed(let error, _) = reply { throw error }
    return (reply, connection)
  }

  /// Makes a call whose reply is a stream.
  /// - Returns: The body of the first frame, and the stream if more frames follow.
  func stream<Q: ServerRequest>(
    _ request: Q, deadline: CallDeadline
  ) async throws(LarderError) -> (body: [UInt8], rest: ReplyStreamReader?) {
    let (reply, connection) = await core.reply(to: request, store: reference, deadline: deadline)
    if case .failed(let error, _) = reply { throw error }
    guard case .body(let body, let id) = reply else {
      preconditionFailure("The reply to \(Q.operation) is not a stream.")
    }
    return (body, id.map { ReplyStreamReader(core, connection, $0) })
  }

  /// Makes a call whose reply is a stream of entry records, and passes each record to `process`. The deadline covers
  /// the whole stream.
  private func readRecords<Q: ServerRequest>(
    _ request: Q, _ process: (RawSpan, EntryRecord) throws(LarderError) -> Void
  ) async throws(LarderError) {
    let deadline = deadline
    var (body, rest) = try await stream(request, deadline: deadline)
    while true {
      try Self.decodeRecords(body, process)
      guard let stream = rest else { return }
      let next = try await stream.next(deadline: deadline.instant)
      body = next.body
      if !next.hasMore { rest = nil }
    }
  }

  private static func decodeRecords(
    _ body: [UInt8], _ process: (RawSpan, EntryRecord) throws(LarderError) -> Void
  ) throws(LarderError) {
    let bytes = unsafe body.span.bytes
    var offset = 0
    while offset < bytes.byteCount {
      guard let record = EntryRecord(bytes, at: offset) else { throw .malformedReply }
      try process(bytes, record)
      offset = record.end
    }
  }

  // MARK: One entry

  /// Returns the entry of a key, or nil if there is none.
  public func get(_ key: String) async throws(LarderError) -> Entry? {
    switch await core.reply(to: GetRequest(key: key), store: reference, deadline: deadline).reply {
    case .entry(let kind, let revision, let expiry, let bytes):
      guard let value = EntryValue(kind, bytes) else { throw .malformedReply }
      return Entry(key: key, value: value, revision: revision, expiresIn: Entry.expiry(milliseconds: expiry))
    case .notFound: return nil
    case .failed(let error, _): throw error
    case .empty, .number, .body, .retry, .mustOpenStore: preconditionFailure("The reply to a get is not an entry.")
    }
  }

  /// Writes a single value.
  /// - Parameters:
  ///   - condition: The condition under which the entry is written.
  ///   - expiresIn: The time until the entry expires, to the millisecond and at least 1 ms; nil for an entry that does
  ///     not expire.
  /// - Returns: The revision of the entry.
  /// - Throws: `conditionFailed` if the condition does not hold; nothing is written then.
  @discardableResult
  public func put(
    _ key: String, _ bytes: [UInt8], if condition: WriteCondition = .always, expiresIn: Duration? = nil
  ) async throws(LarderError) -> UInt64 {
    try await put(Write(key, bytes, if: condition, expiresIn: expiresIn))
  }

  /// Writes a single value of any sequence of bytes, which is copied once.
  @discardableResult
  public func put(
    _ key: String, _ bytes: some Sequence<UInt8>, if condition: WriteCondition = .always, expiresIn: Duration? = nil
  ) async throws(LarderError) -> UInt64 {
    try await put(Write(key, Array(bytes), if: condition, expiresIn: expiresIn))
  }

  /// Writes a list of elements, which may be empty.
  @discardableResult
  public func put(
    _ key: String, list elements: [[UInt8]], if condition: WriteCondition = .always, expiresIn: Duration? = nil
  ) async throws(LarderError) -> UInt64 {
    try await put(Write(key, .list(elements), if: condition, expiresIn: expiresIn))
  }

  /// Writes one entry.
  /// - Returns: The revision of the entry.
  @discardableResult
  public func put(_ write: Write) async throws(LarderError) -> UInt64 {
    try await call(PutRequest(write)).number
  }

  /// Deletes the entry of a key.
  /// - Parameter revision: The revision that the entry must have; nil for any.
  /// - Returns: Whether there was such an entry.
  /// - Throws: `conditionFailed` if there is no entry, or it has another revision.
  @discardableResult
  public func delete(_ key: String, ifRevision revision: UInt64? = nil) async throws(LarderError) -> Bool {
    switch try await call(DeleteRequest(key: key, revision: revision)).number {
    case 0: return false
    case 1: return true
    default: throw .malformedReply
    }
  }

  // MARK: Several entries

  /// Returns the entries of several keys, as they were at one point in time.
  /// - Returns: For each key, in order, its entry or nil.
  /// - Throws: `illegalArgument` for more keys than the server takes in one call.
  public func getMany(_ keys: [String]) async throws(LarderError) -> [Entry?] {
    var entries: [Entry?] = []
    entries.reserveCapacity(keys.count)
    try await readRecords(GetManyRequest(keys: KeyListBody(keys: keys))) { (body, record) throws(LarderError) in
      guard entries.count < keys.count else { throw .malformedReply }
      if record.kind == nil {
        entries.append(nil)
      } else if let entry = Entry(record, in: body, key: keys[entries.count]) {
        entries.append(entry)
      } else {
        throw .malformedReply
      }
    }
    guard entries.count == keys.count else { throw .malformedReply }
    return entries
  }

  /// Writes several entries, all or none of them.
  /// - Returns: The revision of all entries; 0 if there are no writes.
  /// - Throws: `conditionFailed` if one of the conditions does not hold; nothing is written then.
  @discardableResult
  public func putMany(_ writes: [Write]) async throws(LarderError) -> UInt64 {
    var puts: [PutRequest] = []
    puts.reserveCapacity(writes.count)
    for write in writes { puts.append(try PutRequest(write)) }
    return try await call(PutManyRequest(puts: puts)).number
  }

  /// Deletes the entries of several keys in one step.
  /// - Returns: The number of entries that existed.
  @discardableResult
  public func deleteMany(_ keys: [String]) async throws(LarderError) -> UInt64 {
    try await call(DeleteManyRequest(keys: KeyListBody(keys: keys))).number
  }

  /// Deletes all entries.
  /// - Returns: The number of entries that existed.
  @discardableResult
  public func deleteAll() async throws(LarderError) -> UInt64 {
    try await call(DeleteAllRequest()).number
  }

  /// Returns the number of entries whose keys begin with a prefix.
  public func count(prefix: String = "") async throws(LarderError) -> UInt64 {
    try await call(CountRequest(prefix: prefix)).number
  }

  /// Returns the store's figures by their names, which end in their units if they have one.
  public func stats() async throws(LarderError) -> [String: UInt64] {
    try figures(await call(StatsRequest()))
  }

  // MARK: Pages

  /// Returns a page of entries in the order of their keys' bytes, as the store was at one point in time.
  /// - Parameters:
  ///   - offset: The number of entries to skip. An offset past the end gives an empty page.
  ///   - limit: The maximum number of entries, 0 to 4,294,967,295.
  ///   - prefix: Returns only entries whose keys begin with it.
  ///   - after: Returns only entries whose keys are greater, or with `reverse` less. The key need not exist.
  ///   - keysOnly: Whether values are left out; they are empty then.
  /// - Throws: `illegalArgument` for a limit out of range.
  /// - Complexity: O(log n + limit) on the server, at any offset.
  public func page(
    offset: UInt64 = 0, limit: Int = 100, prefix: String = "", after: String? = nil, reverse: Bool = false,
    keysOnly: Bool = false
  ) async throws(LarderError) -> [Entry] {
    let range = ScanRange(prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
    return try await page(range, offset: offset, limit: limit)
  }

  private func page(_ range: ScanRange, offset: UInt64, limit: Int) async throws(LarderError) -> [Entry] {
    guard let limit = UInt32(exactly: limit) else {
      throw LarderError(
        .illegalArgument, outcome: .rejected, "the limit is \(limit); it must be between 0 and \(UInt32.max)")
    }
    var entries: [Entry] = []
    let request = PageRequest(range: range, limit: limit, offset: offset)
    try await readRecords(request) { (body, record) throws(LarderError) in
      guard let entry = Entry(record, in: body, keysOnly: range.keysOnly), entries.count < Int(limit) else {
        throw .malformedReply
      }
      entries.append(entry)
    }
    return entries
  }

  /// Returns all entries, page by page. Each page is a call of its own, so it shows entries that were written since the
  /// previous one.
  /// - Parameter pageSize: The maximum number of entries of a page, at least 1.
  public func pages(
    of pageSize: Int = 100, prefix: String = "", after: String? = nil, reverse: Bool = false, keysOnly: Bool = false
  ) -> Pages {
    let range = ScanRange(prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
    return Pages(store: self, range: range, pageSize: max(1, pageSize))
  }

  /// The pages of a store's entries. Each page is requested when it is needed.
  public struct Pages: AsyncSequence, Sendable {
    public typealias Element = [Entry]
    private let store: RemoteStore
    private let range: ScanRange
    private let pageSize: Int

    fileprivate init(store: RemoteStore, range: ScanRange, pageSize: Int) {
      self.store = store
      self.range = range
      self.pageSize = pageSize
    }

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(store: store, range: range, pageSize: pageSize)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private let store: RemoteStore
      private var range: ScanRange
      private let pageSize: Int
      private var isFinished = false

      fileprivate init(store: RemoteStore, range: ScanRange, pageSize: Int) {
        self.store = store
        self.range = range
        self.pageSize = pageSize
      }

      public mutating func next() async throws(LarderError) -> [Entry]? {
        try await next(isolation: nil)
      }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> [Entry]? {
        guard !isFinished else { return nil }
        let page = try await store.page(range, offset: 0, limit: pageSize)
        isFinished = page.count < pageSize
        range.after = page.last?.key
        return page.isEmpty ? nil : page
      }
    }
  }
}
