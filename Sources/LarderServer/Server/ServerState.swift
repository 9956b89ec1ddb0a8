import Dispatch
import Glibc
import Platform
import Storage
import Synchronization
import Wire

/// What the threads of a server share: its stores, limits, access rules, and the counts that span workers.
///
/// Used by any thread. Everything that changes is atomic, or behind a lock of its own that is held only briefly.
final class ServerState: Sendable {
  let stores: StoreCatalog
  let accessControl: AccessControl
  let connectionCount = ConnectionCount()
  let handshakes = HandshakeCounts()
  let registry = ConnectionRegistry()
  let buffers: BufferTotals
  /// What each worker counts, by its index.
  let workers: [WorkerMetrics]
  let slowLog = Lock(SlowLog())
  let jobs: JobRunner
  /// The names by which clients of HTTP may know the server.
  let httpHosts = HTTPHosts()
  /// The files that browsers get over HTTP, by their paths.
  let httpAssets: [String: HTTPAsset]
  /// The memory of what jobs have found, in bytes, until it has been sent.
  let results = FairShares()
  let expiryTimer: ExpiryTimer
  /// The stores of clients that select databases.
  let databases: RESPDatabases
  let scripts = RESPScripts()
  let channels = RESPChannels()
  let events: RESPEvents
  let largeCommits: LargeCommits
  private let mailboxes = Lock<[Mailbox]>([])
  /// Where stores and indexes are created and dropped, one after the other, because that takes the disk some time.
  let storeChanges = DispatchQueue(label: "larder.stores")
  /// The stores that this server shares with others; nil if it shares none.
  let sharedStores: (any SharedStores)?
  /// What is known of these and their servers.
  let cluster = Lock(ClusterStatus())
  /// What the process may take from the system. Without a limit until stores are open.
  let memory = MemoryBudget()
  private let snapshots: SnapshotBudget
  private let currentLimits: Lock<ServerLimits>
  private let started = monotonicMilliseconds()
  /// When the expiry of tokens was last checked, in seconds since 1970.
  private let tokenCheckTime = Atomic<Int64>(Int64(time(nil)))
  private let recentDurations = Lock(RecentDurations())
  private let currentReadiness = Atomic(Readiness.starting)
  private let drainingWorkerCount = Atomic<Int>(0)

  /// Whether clients are served.
  enum Readiness: UInt8, AtomicRepresentable {
    case starting, ready, stopping
  }

  init(
    limits: ServerLimits, workerCount: Int, findThreadCount: Int, engines: [EngineKind] = .builtIn,
    data: DataDirectory? = nil,
    sharing sharedStores: (any SharedStores)? = nil,
    databases: RESPDatabases = RESPDatabases(), keyspaceEvents: RESPEventClasses = [], httpAssets: [HTTPAsset] = [],
    onRefusal: @escaping @Sendable (RefusalLog.Event) -> Void = { _ in }, auditing: AuditSettings = AuditSettings()
  ) {
    currentLimits = Lock(limits)
    self.databases = databases
    self.httpAssets = Dictionary(uniqueKeysWithValues: httpAssets.map { ($0.path, $0) })
    self.sharedStores = sharedStores
    events = RESPEvents(keyspaceEvents, databases, channels, limits)
    let expiryTimer = ExpiryTimer()
    self.expiryTimer = expiryTimer
    largeCommits = LargeCommits { expiryTimer.entryWillExpire(at: $0) }
    jobs = JobRunner(largeCommits, maxThreadCount: findThreadCount)
    workers = (0..<workerCount).map { _ in WorkerMetrics() }
    accessControl = AccessControl(onRefusal, auditing)
    buffers = BufferTotals(limits: limits, workerCount: workerCount, memory: memory)
    snapshots = SnapshotBudget(limit: limits.maxSnapshotBytes)
    stores = StoreCatalog(
      limit: limits.stores, engines: engines, data: data, budgets: StoreBudgets(snapshots: snapshots, memory: memory),
      sharesStores: sharedStores != nil)
  }

  /// The limits in force. Workers have copies of their own, because every request reads them.
  var limits: ServerLimits { currentLimits.withLock { $0 } }

  /// Changes the limits. Those that clients were told in the reply to a hello must stay: frames, open stores, requests
  /// and keys.
  func change(_ limits: ServerLimits) {
    currentLimits.withLock { $0 = limits }
    stores.setLimit(limits.stores)
    snapshots.setLimit(limits.maxSnapshotBytes)
    memory.setLimit(limits.memoryLimit?.bytes)
  }

  var readiness: Readiness { currentReadiness.load(ordering: .acquiring) }
  func setReadiness(_ readiness: Readiness) { currentReadiness.store(readiness, ordering: .releasing) }

  /// Counts a worker that has executed everything that had arrived before the server was asked to stop.
  func workerBeganDraining() { drainingWorkerCount.add(1, ordering: .releasing) }
  var areAllWorkersDraining: Bool { drainingWorkerCount.load(ordering: .acquiring) == workers.count }

  // MARK: Workers

  /// Adds a worker to those that are notified of dropped stores.
  func add(_ mailbox: Mailbox) { mailboxes.withLock { $0.append(mailbox) } }

  /// Notifies all workers that a store was dropped.
  func storeWasDropped() { for mailbox in mailboxes.withLock({ $0 }) { mailbox.postDroppedStore() } }

  /// Makes all workers check what their clients may do if a token has expired.
  private func endExpiredTokens() {
    let now = Int64(time(nil))
    let last = tokenCheckTime.exchange(now, ordering: .relaxed)
    guard accessControl.policy.tokens.hasExpiry(after: last, upTo: now) else { return }
    for mailbox in mailboxes.withLock({ $0 }) { mailbox.postNewLimits() }
  }

  // MARK: Figures

  var uptimeMilliseconds: UInt64 { monotonicMilliseconds() - started }

  /// The figures of the server: `Protocol/wire.md` §6.1. Locks every store, one after the other.
  func figures() -> [Figure] {
    let quantiles = recentDurations.withLock { $0.quantiles([500, 990, 999], workers) }
    let use = MemoryUse(self)
    let expiry = accessControl.policy.certificates.secondsToExpiry(at: Int64(time(nil)))
    return [
      Figure("uptime_milliseconds", uptimeMilliseconds),
      Figure("connections", connectionCount.open),
      Figure("connections_accepted_total", connectionCount.accepted),
      Figure("connections_refused_total", connectionCount.refused),
      Figure("handshakes", handshakes.open),
      Figure("handshakes_total", handshakes.done),
      Figure("handshakes_failed_total", handshakes.failed),
      Figure("handshakes_refused_total", handshakes.refused),
      Figure("audit_events_total", accessControl.auditFigures.events),
      Figure("audit_events_lost_total", accessControl.auditFigures.lost),
      Figure("requests_total", workers.reduce(0) { $0 + $1.requestCount }),
      Figure("stores", UInt64(stores.list().count)),
      Figure("stores_damaged", UInt64(stores.damagedNames.count)),
      Figure("stores_stopped", UInt64(stores.stoppedNames.count)),
      Figure("cluster_unavailable", cluster.withLock { $0.failure } == nil ? 0 : 1),
      Figure("memory_bytes", UInt64(use.entryBytes)),
      Figure("resident_bytes", UInt64(use.resident)),
      Figure("resident_limit_bytes", UInt64(limits.memoryLimit?.bytes ?? 0)),
      Figure("output_bytes", buffers.outboxBytes),
      Figure("input_bytes", buffers.inboxBytes),
      Figure("received_bytes_total", workers.reduce(0) { $0 + $1[.receivedBytes] }),
      Figure("sent_bytes_total", workers.reduce(0) { $0 + $1[.sentBytes] }),
      Figure("finds", UInt64(jobs.openCount)),
      Figure("find_results_bytes", UInt64(results.amount)),
      Figure("scans_total", workers.reduce(0) { $0 + $1[.scans] }),
      Figure("indexed_finds_total", workers.reduce(0) { $0 + $1[.indexedJobs] }),
      Figure("examined_documents_total", workers.reduce(0) { $0 + $1[.examinedDocuments] }),
      Figure("examined_keys_total", workers.reduce(0) { $0 + $1[.examinedKeys] }),
      Figure("request_p50_nanoseconds", quantiles[0]),
      Figure("request_p99_nanoseconds", quantiles[1]),
      Figure("request_p999_nanoseconds", quantiles[2]),
    ] + (expiry.map { [Figure("certificate_expiry_seconds", $0)] } ?? []) + Self.figures(of: use.parts)
  }

  private static func figures(of parts: [(name: String, bytes: Int)]) -> [Figure] {
    parts.map { Figure("memory_\($0.name)_bytes", UInt64($0.bytes)) }
  }

  /// Updates the recent durations and rates. Called once a second.
  func updateRecentFigures() {
    endExpiredTokens()
    recentDurations.withLock { $0.record(workers) }
    registry.updateRates(now: monotonicMilliseconds())
  }

  /// Returns the figures of a store's map, and the revision that they tell; nil if the store was dropped.
  /// - Parameter isHeld: Whether the figures are not sent before all commits are durable, so that they may tell all.
  static func mapFigures(of store: Store, isHeld: Bool = false, now: UInt64) -> (figures: [Figure], revision: UInt64)? {
    store.access { map in
      if map.isDropped { return nil }
      _ = map.expireBriefly(now: now)
      let contents = isHeld ? map.contents : store.visibleContents(of: map)
      return (figures(of: map, contents: contents), contents.revision)
    }
  }

  private static func figures(of map: borrowing EntryMap, contents: MapContents) -> [Figure] {
    let statistics = map.statistics
    let figures =
      [
        Figure("entries", UInt64(contents.entries)),
        Figure("revision", contents.revision),
        Figure("written_total", statistics.written),
        Figure("key_bytes", UInt64(contents.keyBytes)),
        Figure("value_bytes", UInt64(contents.valueBytes)),
        Figure("values_on_disk", UInt64(statistics.valuesOnDisk)),
        Figure("values_on_disk_bytes", UInt64(statistics.valuesOnDiskBytes)),
        Figure("memory_bytes", UInt64(statistics.memoryBytes)),
        Figure("expiring", UInt64(contents.expiring)),
        Figure("expired_total", statistics.expired),
        Figure("snapshots", UInt64(statistics.snapshots)),
        Figure("snapshots_ended_total", statistics.endedSnapshots),
        Figure("watches", UInt64(map.feed?.watcherCount ?? 0)),
      ] + Self.figures(of: MemoryUse.parts(of: map.memory))
    guard let limit = statistics.limitBytes else { return figures }
    return figures + [
      Figure("limit_bytes", UInt64(limit)), Figure("limited_bytes", UInt64(statistics.limitedBytes)),
      Figure("evicted_total", statistics.evicted),
    ]
  }
}
