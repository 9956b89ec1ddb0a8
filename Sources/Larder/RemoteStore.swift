import Basics
import Wire

/// A store of a server's. A value that is cheap to copy and safe to use from any task; it keeps its client's connections open.
///
/// Calls throw `LarderError`: `storeUnknown` when the server has no such store, `keyInvalid` for a key that is empty or longer than the
/// server takes (4,096 bytes), `valueTooLarge` for a value over the server's limit, `timedOut`, `connectFailed` and `disconnected`
/// for what happens on the way, `cancelled` when the task is. Its `outcome` says what is known of the request.
public struct RemoteStore: Sendable {
  let core: ClientCore
  let reference: StoreReference
  let timeout: UInt64

  init(_ core: ClientCore, _ reference: StoreReference, timeout: UInt64) {
    self.core = core
    self.reference = reference
    self.timeout = timeout
  }

  public var name: String { reference.name }

  /// The same store, whose calls have this long: to wait for a connection and their turn, and to get the reply.
  public func with(timeout: Duration) -> RemoteStore {
    RemoteStore(core, reference, timeout: timeout.wholeMilliseconds)
  }

  /// The entry of a key, or nil when there is none.
  public func get(_ key: String) async throws(LarderError) -> Entry? {
    let reply = await core.connection.call(
      GetRequest(key: key), use: .uses(reference.number), store: reference, time: time)
    switch reply {
    case .entry(let kind, let revision, let expiry, let bytes):
      guard let value = EntryValue(kind, bytes) else { throw .malformedReply }
      return Entry(key: key, value: value, revision: revision, expiresIn: Entry.expiry(milliseconds: expiry))
    case .failed(let error, _): throw error
    default: return nil
    }
  }

  /// Writes a single value.
  /// - Parameters:
  ///   - condition: what must be so for the write to be carried out.
  ///   - expiresIn: after how long the entry ends, to the millisecond and at least one; nil for never.
  /// - Returns: the revision of the entry.
  /// - Throws: `conditionFailed` when the condition does not hold; nothing is written then.
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

  /// Writes a list of elements, of which there may be none.
  @discardableResult
  public func put(
    _ key: String, list elements: [[UInt8]], if condition: WriteCondition = .always, expiresIn: Duration? = nil
  ) async throws(LarderError) -> UInt64 {
    try await put(Write(key, .list(elements), if: condition, expiresIn: expiresIn))
  }

  /// Writes one entry.
  /// - Returns: the revision of the entry.
  @discardableResult
  public func put(_ write: Write) async throws(LarderError) -> UInt64 {
    try await call(PutRequest(write)).number
  }

  /// Deletes the entry of a key.
  /// - Parameter revision: what the entry's revision must be; nil for whatever it is.
  /// - Returns: whether there was such an entry.
  /// - Throws: `conditionFailed` when the entry is missing or has another revision.
  @discardableResult
  public func delete(_ key: String, ifRevision revision: UInt64? = nil) async throws(LarderError) -> Bool {
    try await call(DeleteRequest(key: key, revision: revision)).number == 1
  }

  /// Deletes all entries.
  /// - Returns: how many there were.
  @discardableResult
  public func deleteAll() async throws(LarderError) -> UInt64 {
    try await call(DeleteAllRequest()).number
  }

  /// How many entries have keys that begin with a prefix.
  public func count(prefix: String = "") async throws(LarderError) -> UInt64 {
    try await call(CountRequest(prefix: prefix)).number
  }

  /// The store's figures by their names, which end in their units where they have one.
  public func stats() async throws(LarderError) -> [String: UInt64] {
    try figures(await call(StatsRequest()))
  }

  /// The time of a call that begins now.
  var time: CallTime { CallTime(timeout) }

  @inline(__always)
  func call<Q: Request>(_ request: Q) async throws(LarderError) -> Reply {
    try await core.connection.call(request, store: reference, time: time)
  }
}
