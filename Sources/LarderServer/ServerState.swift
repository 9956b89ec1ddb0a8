import Platform
import Storage
import Synchronization
import Wire

/// What all workers of a server share: its stores, its limits, and the counts that span workers.
final class ServerState: Sendable {
  let stores: StoreCatalog
  private let currentLimits: Lock<ServerLimits>
  private let currentAccess: Lock<AccessPolicy>
  let refusals: RefusalLog
  let userNames = UserNames()
  /// How many bytes may wait to be sent, and of unfinished requests, at one worker. Each has an equal share, so that clients that stall
  /// one worker cost no client of another its connection; it is enough for the largest reply or request.
  let outputShareBytes: Int
  let inputShareBytes: Int
  private let started = monotonicMilliseconds()
  /// What each worker counts, by its index.
  let workers: [WorkerMetrics]
  let slowLog = Lock(SlowLog())
  private let recentDurations = Lock(RecentDurations())
  let readiness = Atomic(Readiness.starting)

  /// Whether clients are served.
  enum Readiness: UInt8, AtomicRepresentable {
    case starting, ready, stopping
  }

  let connections = Atomic<Int>(0)
  let connectionsAccepted = Atomic<UInt64>(0)
  let connectionsRefused = Atomic<UInt64>(0)
  let registry = ConnectionRegistry()
  /// Bytes that wait in all connections' outboxes.
  let outputBytes = Atomic<Int>(0)
  /// Bytes that all connections' inboxes take.
  let inputBytes = Atomic<Int>(0)
  /// Workers that have answered all that had come before the end was asked for.
  let drainingWorkers = Atomic<Int>(0)

  init(
    limits: ServerLimits, workerCount: Int, data: DataDirectory? = nil,
    tellRefusal: @escaping @Sendable (RefusalLog.Event) -> Void = { _ in }
  ) {
    currentLimits = Lock(limits)
    workers = (0..<workerCount).map { _ in WorkerMetrics() }
    currentAccess = Lock(.nobody)
    refusals = RefusalLog(tellRefusal)
    outputShareBytes = max(limits.totalOutputBytes / workerCount, limits.outputBytes + limits.maxFrameBytes)
    // A buffer that grows takes up to twice its contents.
    inputShareBytes = max(limits.totalInputBytes / workerCount, 2 * limits.maxFrameBytes)
    stores = StoreCatalog(limit: limits.stores, data: data)
  }

  /// The limits as they are now. Workers have copies of their own, for they look at them with every request.
  var limits: ServerLimits { currentLimits.withLock { $0 } }

  /// Who may do what, as it is now.
  var access: AccessPolicy { currentAccess.withLock { $0 } }

  func change(_ access: AccessPolicy) { currentAccess.withLock { $0 = access } }

  /// Has other limits be in force. What clients were told in a hello must stay: frames, open stores, requests, keys.
  func change(_ limits: ServerLimits) {
    currentLimits.withLock { $0 = limits }
    stores.setLimit(limits.stores)
  }

  var uptimeMilliseconds: UInt64 { monotonicMilliseconds() - started }

  /// `Protocol/wire.md` §6.1. Takes every store's lock in turn.
  func figures() -> [Figure] {
    let quantiles = recentDurations.withLock { $0.quantiles([500, 990, 999], workers) }
    let all = stores.list()
    let memory = all.reduce(0) { $0 + UInt64($1.access { $0.statistics.memoryBytes }) }
    return [
      Figure("uptime_milliseconds", uptimeMilliseconds),
      Figure("connections", UInt64(connections.load(ordering: .relaxed))),
      Figure("connections_accepted_total", connectionsAccepted.load(ordering: .relaxed)),
      Figure("connections_refused_total", connectionsRefused.load(ordering: .relaxed)),
      Figure("requests_total", workers.reduce(0) { $0 + $1.requestCount }),
      Figure("stores", UInt64(all.count)),
      Figure("memory_bytes", memory),
      Figure("output_bytes", UInt64(max(0, outputBytes.load(ordering: .relaxed)))),
      Figure("input_bytes", UInt64(max(0, inputBytes.load(ordering: .relaxed)))),
      Figure("received_bytes_total", workers.reduce(0) { $0 + $1[.receivedBytes] }),
      Figure("sent_bytes_total", workers.reduce(0) { $0 + $1[.sentBytes] }),
      Figure("request_p50_nanoseconds", quantiles[0]),
      Figure("request_p99_nanoseconds", quantiles[1]),
      Figure("request_p999_nanoseconds", quantiles[2]),
    ]
  }

  /// Has recent durations and rates be recent. Once a second.
  func noteSecond() {
    recentDurations.withLock { $0.note(workers) }
    registry.noteRates(now: monotonicMilliseconds())
  }

  static func figures(of map: inout EntryMap, now: UInt64) -> [Figure] {
    map.expire(now: now)
    let statistics = map.statistics
    let figures = [
      Figure("entries", UInt64(statistics.entries)),
      Figure("revision", statistics.revision),
      Figure("key_bytes", UInt64(statistics.keyBytes)),
      Figure("value_bytes", UInt64(statistics.valueBytes)),
      Figure("values_on_disk", UInt64(statistics.valuesOnDisk)),
      Figure("values_on_disk_bytes", UInt64(statistics.valuesOnDiskBytes)),
      Figure("memory_bytes", UInt64(statistics.memoryBytes)),
      Figure("expiring", UInt64(statistics.expiring)),
      Figure("expired_total", statistics.expired),
      Figure("snapshots", UInt64(statistics.snapshots)),
      Figure("watches", UInt64(map.feed?.watcherCount ?? 0)),
    ]
    guard let limit = statistics.limitBytes else { return figures }
    return figures + [
      Figure("limit_bytes", UInt64(limit)), Figure("limited_bytes", UInt64(statistics.limitedBytes)),
      Figure("evicted_total", statistics.evicted),
    ]
  }
}
