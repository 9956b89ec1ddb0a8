import Dispatch
import Documents
import Glibc
import Platform
import Synchronization

/// A named map of entries, shared by every connection that has opened it.
///
/// The store's lock guards the map, and `access` is the only way in, so whatever one call does is atomic. A worker runs
/// a whole batch of requests under one acquisition, because acquiring the lock is expensive and holding it is not.
package final class Store: Sendable {
  package let name: StoreName
  /// The specification of another store of this kind.
  package let specification: StoreSpecification
  /// What makes the store's commits durable; nil for a store in memory.
  package let commitWriter: CommitWriter?
  /// Runs reads that wait for the disk.
  package let diskReads = DiskReads()
  /// The keys of documents whose values are in files; nil if none are.
  let keptKeys: KeptKeys?
  /// The identity of the store's history, 1 to 2⁶³ − 1. A store that was created again, or may have lost its last commits,
  /// has another one.
  package let incarnation: UInt64
  /// Where the history is recorded; nil if it ends with this object.
  private let historyRecord: HistoryRecord?
  /// How current the store is; nil if this server makes its changes.
  package let freshness: Freshness?
  /// What the server must hold to answer reads of the store; nil if no other server can take it over.
  package let lease: Lease?
  /// Where the store's engine records indexes; nil if the data directory does.
  let records: (any StoreRecords)?
  private let damagedIndexes: Atomic<Bool>
  private let mutex: Lock<EntryMap>
  /// The number of threads that sleep until they get the lock.
  private let waitingCount = Atomic(0)
  private let endsReaders = Atomic(false)

  /// How many times a thread lets others take their turn, and how long each time, in microseconds, without about 50 that
  /// the system adds.
  private static let maxYields = 8
  private static let yieldTime: UInt32 = 20

  /// Creates a store in memory.
  package convenience init(
    name: StoreName, engine: EngineKind, limit: MemoryLimit? = nil, budgets: StoreBudgets = StoreBudgets()
  ) {
    self.init(
      name: name, StoreSpecification(engine, limit: limit), map: EntryMap(limitBytes: limit?.bytes, budgets: budgets),
      incarnation: StoreHistory.makeIncarnation())
  }

  /// Creates a store that this server does not write to any disk or database.
  init(
    name: StoreName, _ specification: StoreSpecification, map: consuming sending EntryMap, incarnation: UInt64,
    freshness: Freshness? = nil
  ) {
    self.name = name
    self.freshness = freshness
    self.specification = specification.complete
    commitWriter = nil
    keptKeys = nil
    damagedIndexes = Atomic(false)
    (self.incarnation, historyRecord) = (incarnation, nil)
    (lease, records) = (nil, nil)
    mutex = Lock(map)
  }

  /// Creates a durable store from a map that `engine` has loaded. It lives until `close`.
  package convenience init(
    name: StoreName, engine kind: EngineKind, map: consuming sending EntryMap, writingTo engine: any Engine,
    durability: Durability
  ) {
    self.init(
      name: name, StoreSpecification(kind, durability: durability), map: map, writingTo: engine, durability: durability,
      incarnation: StoreHistory.makeIncarnation(), recordedIn: nil, keptKeys: nil, hasDamagedIndexes: false)
  }

  /// - Parameter historyRecord: Where the store's history is recorded as closed when it is.
  private init(
    name: StoreName, _ specification: StoreSpecification, map: consuming sending EntryMap,
    writingTo engine: any Engine, durability: Durability, incarnation: UInt64,
    recordedIn historyRecord: HistoryRecord?, keptKeys: KeptKeys?,
    hasDamagedIndexes: Bool
  ) {
    self.name = name
    self.specification = specification.complete
    let commitWriter = CommitWriter(engine, durability: durability, revision: map.revisions.last, name: name)
    self.commitWriter = commitWriter
    self.keptKeys = keptKeys
    damagedIndexes = Atomic(hasDamagedIndexes)
    (self.incarnation, self.historyRecord) = (incarnation, historyRecord)
    (lease, records, freshness) = (engine.lease, engine.records, nil)
    mutex = Lock(map)
    commitWriter.start(self)
  }

  package var engine: EngineKind { specification.engine }

  /// Whether a reply that reveals a revision must wait until that is durable.
  package func gatesReplies(revealing revision: UInt64) -> Bool {
    guard let commitWriter else { return false }
    return commitWriter.gatesReplies && !commitWriter.isDurable(revision)
  }

  /// Whether another server has taken the store over, or could have.
  package var isLost: Bool { commitWriter?.hasLostStore ?? false }
  /// The memory limit for the entries; nil for no limit.
  package var limit: MemoryLimit? { specification.limit }

  /// A Boolean value that indicates whether the store has no indexes because the file with their definitions is damaged.
  var hasDamagedIndexes: Bool { damagedIndexes.load(ordering: .relaxed) }

  /// Records that the file with the definitions of the store's indexes was replaced.
  func didRecordIndexes() { damagedIndexes.store(false, ordering: .relaxed) }

  /// The figures of a durable store's files, or of a store whose changes another server makes; none for a store in memory.
  package var fileFigures: [(name: String, value: UInt64)] {
    if let freshness { return [("staleness_milliseconds", freshness.staleness(at: monotonicMilliseconds()))] }
    return commitWriter.map { $0.figures + [("indexes_damaged", hasDamagedIndexes ? 1 : 0)] } ?? []
  }

  /// Writes the outstanding commits of a durable store and closes its engine. The store accepts no writes afterwards.
  package func close() {
    commitWriter?.stop()
    recordClosing()
  }

  /// Records that all commits have been written, so that the history continues when the store is next opened.
  private func recordClosing() {
    guard let historyRecord, let commitWriter, commitWriter.failure == nil else { return }
    let history: StoreHistory? = access { map in
      guard !map.isDropped, commitWriter.isDurable(map.revisions.last) else { return nil }
      return StoreHistory(
        incarnation: incarnation, state: .closed, revision: map.revisions.last, commitRevision: map.commitRevision)
    }
    // Without the record, another history begins then, which is always right.
    if let history { try? historyRecord.write(history) }
  }

  /// Runs `body` with exclusive access to the map. Keep it short, and never call `access` of any store from inside.
  ///
  /// A store that was dropped meanwhile provides its empty map, with `isDropped` set.
  package func access<Result, Failure: Error>(
    _ body: (inout EntryMap) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    lock()
    defer { unlock() }
    return try unsafe body(&map)
  }

  /// Runs `body` as `access` does, after those who wait for the lock. For threads that access the store again and again:
  /// one that has just released the lock gets it before one that has to wake up, and would keep it from all others.
  package func accessInTurn<Result, Failure: Error>(
    _ body: (inout EntryMap) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    var yields = 0
    while waitingCount.load(ordering: .relaxed) > 0, yields < Self.maxYields {
      usleep(Self.yieldTime)
      yields += 1
    }
    return try access(body)
  }

  /// Returns how much a client may be told is in the map. Of a store whose clients must not see what a crash can take back,
  /// this is what the map contained after the newest durable commit. The caller has the store's lock.
  package func visibleContents(of map: borrowing EntryMap) -> MapContents {
    let contents = map.contents
    return commitWriter?.visibleContents(of: contents) ?? contents
  }

  /// Takes the store's lock for several uses of `map`, until `unlock` on the same thread. The same rules apply as for
  /// `access`.
  @inline(__always)
  package func lock() {
    if !mutex.tryLock() { waitForLock() }
  }

  @inline(never)
  private func waitForLock() {
    waitingCount.add(1, ordering: .relaxed)
    mutex.lock()
    waitingCount.subtract(1, ordering: .relaxed)
  }

  package func unlock() { mutex.unlock() }

  /// Whether those who read entries without the lock must stop soon, because the store's contents are handed over.
  package var mustEndReading: Bool { endsReaders.load(ordering: .relaxed) }

  /// Takes the lock as soon as nobody reads entries without it, and nobody begins to.
  func lockWithoutReaders() {
    endsReaders.store(true, ordering: .relaxed)
    lock()
    while unsafe map.hasReaders {
      unlock()
      usleep(Self.yieldTime)
      lock()
    }
  }

  /// Takes the lock as soon as no large commit is being made. For threads that may wait.
  func lockBetweenLargeCommits() {
    while true {
      lock()
      guard unsafe map.isDiverted else { return }
      let ended = DispatchSemaphore(value: 0)
      unsafe map.addCommitWaiter { ended.signal() }
      unlock()
      ended.wait()
    }
  }

  /// Runs `body` as `access` does, as soon as no large commit is being made. For threads that may wait.
  func accessBetweenLargeCommits<Result, Failure: Error>(
    _ body: (inout EntryMap) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lockBetweenLargeCommits()
    defer { unlock() }
    return try unsafe body(&map)
  }

  /// The map, for a caller that has acquired the lock.
  @unsafe
  package var map: EntryMap {
    unsafeAddress { unsafe UnsafePointer(mutex.lockedValue) }
    unsafeMutableAddress { unsafe mutex.lockedValue }
  }
}

extension Store: CommitSource {
  /// The number of locations to update under one acquisition of the lock.
  private static let locationsPerAccess = 64
  /// The bytes of records of a snapshot to copy under one acquisition of the lock.
  private static let recordBytesPerAccess = 64 << 10

  package func read<Result>(_ body: (borrowing EntryMap) -> sending Result) -> sending Result {
    access { map in body(map) }
  }

  package func updateLocations(_ values: [ValueLocation]) {
    // Of two values with one key and revision, the later one counts: it comes first here, and the map then ignores the
    // other.
    var end = values.count
    while end > 0 {
      let start = max(0, end - Self.locationsPerAccess)
      access { map in
        for value in values[start..<end].reversed() { map.updateLocation(value) }
      }
      end = start
    }
  }

  package func wake() { commitWriter?.wake() }

  package func takeSnapshot() -> Snapshot? {
    access { map in
      guard !map.isDropped, !map.isDiverted else { return nil }
      return map.snapshot(now: monotonicMilliseconds(), isPinned: true)
    }
  }

  package func addRecords(
    of snapshot: Snapshot, from rank: Int, to buffer: inout CommitBuffer, upTo byteCount: Int
  ) throws(StorageError) -> Int {
    let now = ClockReading.now
    var next = rank
    while next < snapshot.count, buffer.count < byteCount {
      let limit = min(byteCount, buffer.count + Self.recordBytesPerAccess)
      next += try accessInTurn { map throws(StorageError) in
        try map.scan(ranks: next..<snapshot.count, reverse: false, in: snapshot, now: now.monotonic) { entry in
          let kind: CommitBuffer.Kind = entry.kind == .list ? .list : .single
          let expiry = entry.expiry == 0 ? 0 : now.wall(ofMonotonic: entry.expiry)
          if let value = unsafe entry.value {
            unsafe buffer.put(entry.key, value, kind: kind, expiry: expiry, revision: entry.revision)
          } else if let value = entry.separatedValue, let reference = value.reference {
            unsafe buffer.put(
              entry.key, referringTo: value, at: reference, kind: kind, expiry: expiry, revision: entry.revision)
          } else {
            preconditionFailure("an engine that keeps values in files has snapshots of its own")
          }
          return buffer.count < limit
        }
      }
    }
    buffer.seal()
    return next
  }

  package func endSnapshot(_ snapshot: Snapshot) { access { $0.end(snapshot) } }
}

// MARK: Opening

/// What opening a store has found.
package struct StoreOpening: Sendable {
  package var entries = 0
  package var revision: UInt64 = 0
  /// The time that opening took.
  package var milliseconds: UInt64 = 0
  /// Remarks for the operator, such as a truncated tail or files that don't belong to the store.
  package var remarks: [String] = []
}

extension Store {
  /// Opens a durable store with its engine.
  /// - Parameters:
  ///   - data: Where the store is recorded, if its engine's stores are.
  ///   - budgets: What the store and others may use together.
  ///   - requiresIndexes: Whether damaged definitions of indexes are an error. Otherwise the store has no indexes then.
  ///   - progress: Called repeatedly with how much has been read, and of how much.
  package static func open(
    _ description: StoreDescription, in data: DataDirectory?, budgets: StoreBudgets = StoreBudgets(),
    requiresIndexes: Bool = false, progress: (Int, Int) -> Void = { _, _ in }
  ) throws -> (store: Store, opening: StoreOpening) {
    let data = description.engine.isRecorded ? data : nil
    precondition(!description.engine.isRecorded || data != nil, "a data directory records the stores of the engine")
    let now = ClockReading.now
    let folder = try data?.prepareFolder(of: description.name)
    var indexes: [DocumentIndex] = []
    var indexDamage: DataDirectoryError?
    do throws(DataDirectoryError) { indexes = try data?.indexes(of: description.name) ?? [] } catch {
      if requiresIndexes { throw error }
      indexDamage = error
    }
    var map = EntryMap(budgets: budgets)
    var opening = StoreOpening()
    let engine: any Engine
    (engine, opening.remarks) = try description.engine.open(
      EngineOpening(
        name: description.name, specification: description.specification, folder: folder,
        fileSystem: data?.fileSystem ?? LocalFileSystem(), now: now),
      into: &map, progress: progress)
    let historyRecord: HistoryRecord?
    let recorded: StoreHistory?
    do {
      if let records = engine.records {
        historyRecord = .engine(records)
        indexes = try records.indexes()
      } else {
        historyRecord = data.map { .file($0.historyFile(of: description.name)) }
      }
      recorded = try historyRecord?.read()
    } catch {
      engine.stopBackgroundWork()
      try? engine.close()
      throw error
    }
    if let indexDamage {
      opening.remarks.append(
        "\(indexDamage.summary); the store is served without indexes, until they are created again")
    }
    let history = StoreHistory.opened(
      after: recorded, commitRevision: map.revisions.last, description.durability, now: now.wall)
    map.skipRevisions(through: history.revision)
    opening.entries = map.order.count
    opening.revision = map.revisions.last
    opening.milliseconds = monotonicMilliseconds() - now.monotonic
    let store = Store(
      name: description.name, description.specification, map: map, writingTo: engine,
      durability: description.durability, incarnation: history.incarnation, recordedIn: historyRecord,
      keptKeys: description.engine.separatesValues ? data?.keptKeys(of: description.name) : nil,
      hasDamagedIndexes: indexDamage != nil)
    do {
      // Before any client can write.
      try historyRecord?.write(history)
      try store.restoreIndexes(indexes)
    } catch {
      store.close()
      throw error
    }
    return (store, opening)
  }
}
