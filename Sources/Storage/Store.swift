import Platform

/// A named map of entries, shared by every connection that opened it.
///
/// The map belongs to the store's lock: `access` is the only way in, so whatever one call does is atomic to all others.
/// A worker runs a whole batch of requests under one call, because taking the lock is what costs, not holding it.
package final class Store: Sendable {
  package let name: StoreName
  package let engine: EngineKind
  /// How much memory its entries may take; nil for as much as there is.
  package let limit: MemoryLimit?
  /// What makes its commits durable; nil for a store that nothing survives.
  package let commitWriter: CommitWriter?
  private let lock: Lock<EntryMap>

  /// A store in memory.
  package init(name: StoreName, engine: EngineKind, limit: MemoryLimit? = nil) {
    self.name = name
    self.engine = engine
    self.limit = limit
    commitWriter = nil
    lock = Lock(EntryMap(limitBytes: limit?.bytes))
  }

  /// A store that keeps its entries in files, from which `map` was read. It lives until `close`.
  package init(
    name: StoreName, engine kind: EngineKind, map: consuming sending EntryMap, writingTo engine: any Engine,
    durability: Durability
  ) {
    self.name = name
    self.engine = kind
    limit = nil
    let commitWriter = CommitWriter(engine, durability: durability, revision: map.revision, name: name)
    self.commitWriter = commitWriter
    lock = Lock(map)
    commitWriter.start(self)
  }

  /// Writes what was committed, and closes the files of a store that has some. Nothing can be written then.
  package func close() {
    commitWriter?.end()
  }

  /// Runs `body` with the map to itself. Keep it short, and never call `access` of any store from inside.
  ///
  /// A store that was dropped meanwhile hands out its empty map with `isDropped` set.
  package func access<Result, Failure: Error>(
    _ body: (inout EntryMap) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try lock.withLock { (map: inout sending EntryMap) throws(Failure) -> sending Result in try body(&map) }
  }

  /// Takes the map for several calls in a row, on one thread, until `release`. The same rules hold as for `access`.
  package func acquire() { lock.acquire() }

  package func release() { lock.release() }

  /// The map, for whoever has acquired it.
  @unsafe
  package var map: EntryMap {
    unsafeAddress { unsafe UnsafePointer(lock.held) }
    unsafeMutableAddress { unsafe lock.held }
  }
}
