// A read from a live cache:
//
// 1. `LiveCacheRepository` returns what `LiveCache` has for the key, if the cache is trusted at that moment. Otherwise
//    `LiveCacheSource` reads the store, and the cache keeps the entry unless it knows of a newer change of the key:
//    revisions decide.
// 2. `LiveCacheFeed` watches the keys of the store, and removes what a commit contradicts. It sends pings over the
//    connection of the watch. Each reply shows that all changes before it have arrived, so that the cache is trusted
//    for a while longer.
// 3. After a lost connection the watch continues, and the cache is trusted again once the changes up to then have
//    arrived. If the store's `incarnation` is another one, or changes are lost, the cache begins empty.

import Basics
import DataSources

/// A repository that caches a store of a server, and follows every change of the store, by any client.
///
///     let books = LiveCacheRepository(main: client.dataSource(of: Book.self, store: "books"))
///     let book = try await books.get(7)   // from the server
///     let again = try await books.get(7)  // from memory, until somebody changes the book
///
/// **How old a cached value can be.** The repository watches the keys of the store, over the client's connection. A
/// cached value is returned until the message of its change arrives, which takes a fraction of a millisecond on one
/// machine, and otherwise as long as messages take. Nothing is cached for which a newer change is known, whatever
/// overtakes what on the way. A value that expires is absent on time. Writes through the repository are visible to its
/// readers as soon as they return.
///
/// The repository pings the server every half of `maxSilence`. If there is no reply, or while there is no connection,
/// the cache is not trusted, and every read goes to the server. So a value is never returned later than `maxSilence`
/// after the last reply before the change. With a new connection, the server delivers the changes since the last one,
/// and the cache goes on with the values that are still right. Where the server can't say what has changed, because it
/// was restarted, the store was dropped and created again, or there were more changes than it keeps, the cache begins
/// empty. In a store whose durability isn't `always`, a crash can undo writes that the cache has seen; then it begins
/// empty, too.
///
/// **What is cached.** Single values, lists, and the knowledge that there is none, by key, in memory. Pages, lists of
/// everything and queries about documents always come from the server. Several ids are read from the cache as far as it
/// has them, and otherwise in one exchange: each value is as new as described, but all are of one point in time only with
/// the operation `main`.
///
/// **Operations.** `cacheSync`, the default, reads the cache if it is trusted, and otherwise the server; with `fallback`,
/// if the server can't be reached, it returns a cached value even if it may be out of date. `main` reads the server only,
/// and `mainSync` caches the result. `cache` reads only the cache, whether it is trusted or not. Writes go to the server
/// with every operation but `cache`: with that one, a deletion drops cached values, and a put throws `notImplemented`.
///
/// Copies of a repository share the cache. Releasing the last one ends the watch. The repository throws what the remote
/// source throws.
public struct LiveCacheRepository<T: Sendable>: GetRepository, PutRepository, DeleteRepository {
  private let main: RemoteDataSource<T>
  private let feed: LiveCacheFeed
  private let defaultOperation: RepositoryOperation
  /// Whether a call without an operation returns what is cached.
  private let readsCache: Bool

  /// Creates a repository. It begins to watch the store with the first call that reads or writes an entry.
  /// - Parameters:
  ///   - prefix: Caches and watches only keys that begin with it.
  ///   - limit: The maximum number of cached keys, at least 1. New keys evict those that were not used recently.
  ///   - maxSilence: How long cached values are returned after the last reply to a ping, at least 10 ms.
  ///   - defaultOperation: The operation of calls that don't name one.
  public init(
    main: RemoteDataSource<T>, prefix: String = "", limit: Int = 10_000, maxSilence: Duration = .seconds(1),
    defaultOperation: RepositoryOperation = .cacheSync()
  ) {
    self.main = main
    let milliseconds = min(max(10, maxSilence.wholeMilliseconds), 86_400_000)
    feed = LiveCacheFeed(main.store, prefix: prefix, limit: max(1, limit), maxSilence: milliseconds * 1_000_000)
    self.defaultOperation = defaultOperation == .default ? .cacheSync() : defaultOperation
    readsCache = [.cacheSync(), .cacheSync(fallback: true)].contains(self.defaultOperation)
  }

  /// A Boolean value that indicates whether reads use the cache now. It is false until the first call has begun to watch
  /// the store, and whenever the server can't be reached.
  public var isLive: Bool { feed.cache.isTrusted }

  /// The number of keys in the cache.
  public var cachedCount: Int { feed.cache.count }

  private func source(_ operation: RepositoryOperation) -> LiveCacheSource<T> {
    LiveCacheSource(main: main, feed: feed, operation: operation == .default ? defaultOperation : operation)
  }

  // MARK: Reading

  // Most calls are for one cached value. They are specialized for the type of the value.
  @inlinable
  public func get(_ query: any Query) async throws -> T {
    if case .key(let key) = query.keyValueAddress, let content = cachedContent(of: key),
      case .single(let value)? = CachedValue<T>.of(content).value
    {
      return value
    }
    return try await get(query, operation: .default)
  }

  @usableFromInline func cachedContent(of key: String) -> CachedContent? {
    readsCache ? feed.cache.trustedContent(of: key) : nil
  }

  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> T {
    try await source(operation).get(query)
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await source(operation).getAll(query)
  }

  // MARK: Writing

  @discardableResult
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    try await source(operation).put(value, in: query)
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await source(operation).putAll(array, in: query)
  }

  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await source(operation).delete(query)
  }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await source(operation).deleteAll(query)
  }
}
