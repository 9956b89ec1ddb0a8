import Platform
import Storage

/// Creates replicated stores, takes them over, and loads their entries from the shared log.
package struct StoreOpener {
  /// How much of a log is read at a time, in bytes.
  private static let readByteCount = 8 << 20
  /// How much of the latest changes is kept for watches that began at other servers, in bytes.
  private static let feedByteCount = 16 << 20

  private let log: any SharedLog
  private let membership: Membership
  private let life: Membership.Life

  package init(log: any SharedLog, membership: Membership, life: Membership.Life) {
    (self.log, self.membership, self.life) = (log, membership, life)
  }

  /// Opens a store, which is created unless it exists.
  /// - Throws: `StorageError` if another node leads it, or the log is unavailable.
  package func open(
    _ store: EngineOpening, into map: inout EntryMap, progress: (Int, Int) -> Void
  ) throws -> ReplicatedEngine {
    let leadership: Leadership
    do { leadership = try lead(store) } catch let error as SharedLogError {
      throw StorageError.engineUnavailable("\(error)")
    }
    do { return try load(store, leadership, into: &map, progress: progress) } catch {
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

  private func load(
    _ store: EngineOpening, _ leadership: Leadership, into map: inout EntryMap, progress: (Int, Int) -> Void
  ) throws -> ReplicatedEngine {
    let snapshot = try log.snapshot(of: leadership.store)
    var loader = try RecordLoader(
      at: store.now, expecting: snapshot?.entryCount ?? 0, keeping: Self.feedByteCount,
      notifiesImmediately: store.specification.durability != .always, into: &map)
    let partCount = snapshot?.partCount ?? 0
    if let snapshot {
      for number in 0..<partCount {
        let part = try log.part(number, of: snapshot, in: leadership.store)
        try verifying(store, "part \(number) of its snapshot") { () throws(RecordLoadingError) in
          guard !part.isEmpty else { throw .damaged("it is missing") }
          try unsafe part.withRecords { (bytes) throws(RecordLoadingError) in
            try unsafe loader.loadSnapshot(bytes, revision: snapshot.revision, into: &map)
          }
        }
        // The commits are about as much again.
        progress(number + 1, 2 * partCount)
      }
    }
    var (position, lastRevision) = (snapshot?.position ?? 0, snapshot?.revision ?? 0)
    let first = position
    var byteCount = 0
    while position < leadership.position {
      let commits = try log.commits(of: leadership.store, from: position + 1, upTo: Self.readByteCount)
      for commit in commits where commit.position <= leadership.position {
        try verifying(store, "its commit \(position + 1)") { () throws(RecordLoadingError) in
          guard commit.position == position + 1 else { throw .damaged("it is missing") }
          try unsafe commit.records.withRecords { (bytes) throws(RecordLoadingError) in
            try unsafe loader.loadCommits(bytes, into: &map)
          }
        }
        position = commit.position
        lastRevision = max(lastRevision, commit.lastRevision)
        byteCount += commit.records.count
      }
      guard !commits.isEmpty else {
        throw StorageError.storeDamaged(store.name, "its commit \(position + 1) is missing in the database")
      }
      progress(Int(position - first) + partCount, Int(leadership.position - first) + 2 * partCount)
    }
    lastRevision = max(lastRevision, try loader.finish(&map))
    return ReplicatedEngine(
      leadership, at: position, lastRevision: lastRevision, unsnapshotByteCount: byteCount, as: life, in: log)
  }

  private func verifying(
    _ store: EngineOpening, _ what: String, _ body: () throws(RecordLoadingError) -> Void
  ) throws {
    do throws(RecordLoadingError) { try body() } catch {
      switch error {
      case .damaged(let reason): throw StorageError.storeDamaged(store.name, "\(what) is damaged: \(reason)")
      case .noMemory(let error): throw error
      }
    }
  }
}

extension [UInt8] {
  fileprivate func withRecords<Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    let bytes = unsafe span.bytes
    try unsafe bytes.withUnsafeBytes { (buffer) throws(Failure) in try unsafe body(buffer) }
  }
}
