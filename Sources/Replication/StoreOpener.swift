import Dispatch
import Platform
import Storage

/// Creates replicated stores, takes them over, and loads their entries from the shared log.
package struct StoreOpener {
  private let log: any SharedLog
  private let membership: Membership
  private let life: Membership.Life
  private let cache: ValueCache
  private let queue: DispatchQueue

  /// - Parameters:
  ///   - cache: Where large values are kept that were used last.
  ///   - queue: Where snapshots are written.
  package init(
    log: any SharedLog, membership: Membership, life: Membership.Life, keepingValuesIn cache: ValueCache,
    upkeepOn queue: DispatchQueue
  ) {
    (self.log, self.membership, self.life) = (log, membership, life)
    (self.cache, self.queue) = (cache, queue)
  }

  /// Opens a store, which is created unless it exists.
  /// - Parameter followed: Returns the store with this number, if this server has followed it until now.
  /// - Throws: `StorageError` if another node leads it, or the log is unavailable.
  package func open(
    _ store: EngineOpening, into map: inout EntryMap, following followed: (StoreID) -> FollowedStore? = { _ in nil },
    progress: (Int, Int) -> Void
  ) throws -> ReplicatedEngine {
    let leadership: Leadership
    do { leadership = try lead(store) } catch let error as SharedLogError {
      throw StorageError.engineUnavailable("\(error)")
    }
    do {
      let followed = followed(leadership.store)
      let values = followed?.values ?? StoreValues(of: leadership.store, store.name, in: log, keptIn: cache)
      let reader = StoreReader(
        log: log, store: leadership.store, name: store.name, durability: store.specification.durability, values: values)
      let place =
        try followed?.takeOver(upTo: leadership.position, into: &map, at: store.now)
        ?? reader.load(upTo: leadership.position, into: &map, at: store.now, progress: progress)
      return ReplicatedEngine(
        leadership, at: place, lastRevision: map.revisions.last, values: values, as: life, in: log,
        upkeepOn: queue)
    } catch {
      // Another node may have more memory, or a better connection.
      try? log.release(leadership, to: nil)
      throw error
    }
  }

  private func lead(_ store: EngineOpening) throws -> Leadership {
    let specification = store.specification.description
    if let state = try log.stores().first(where: { $0.name == store.name.text }) {
      if let leader = state.leader, leader != life.node, let node = try membership.liveNodes()[leader] {
        throw StorageError.servedElsewhere(store.name, StoreElsewhere(servedBy: node))
      }
      if let leadership = try log.lead(state, as: life.node) { return leadership }
    } else if let leadership = try log.create(store.name.text, specification, for: life.node) {
      return leadership
    }
    throw StorageError.servedElsewhere(store.name, StoreElsewhere("another server leads it since a moment ago"))
  }
}
