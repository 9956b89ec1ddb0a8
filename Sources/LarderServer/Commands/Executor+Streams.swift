import Storage
import Wire

/// Commands whose outcome is several entries, or changes. A session sends them, in one part or several, and calls `visit`
/// for each part.
extension Executor {
  /// The maximum number of keys that are looked up for one part, because the store is locked meanwhile.
  private static let maxKeysPerPart = 512

  mutating func getMany(_ keys: KeyList, in bytes: RawSpan) -> Detour {
    if let (code, reason) = KeyList.flaw(in: bytes, limits) { return .failure(code, reason) }
    return .entries(.keys(keys), revealing: 0)
  }

  mutating func scan(_ request: ScanRequest, in bytes: RawSpan, _ map: inout EntryMap) -> Detour {
    guard request.prefix.count <= Key.maxSize else { return Self.failPrefix(request.prefix.count) }
    if let cursor = request.cursor, cursor.count > Key.maxSize {
      return .failure(.illegalArgument, "the cursor has \(cursor.count) bytes; the limit is \(Key.maxSize)")
    }
    let prefix = bytes.extracting(request.prefix)
    let matches: Range<Int>
    if let cursor = request.cursor {
      matches = map.ranks(prefix: prefix, after: bytes.extracting(cursor), reverse: request.isReverse, now: now)
    } else {
      matches = map.ranks(prefix: prefix, after: nil, reverse: request.isReverse, now: now)
    }
    let scan = EntryCursor.Scan(
      ranks: request.page(of: matches), isReverse: request.isReverse, isKeysOnly: request.isKeysOnly)
    // The page shows which keys there are; with an offset, also how many come before it.
    let revision =
      request.offset == 0 ? map.revisions.lastRemoval : max(map.revisions.lastRemoval, map.revisions.lastInsertion)
    return .entries(.scan(scan), revealing: revision)
  }

  /// Passes entries to `append` until there are no more, there were enough for one part, or it returns false, which means
  /// that it has not appended the entry.
  /// - Parameters:
  ///   - bytes: Those of the request, if the cursor still depends on them.
  ///   - snapshot: Where the entries are; nil for the current ones.
  ///   - append: Called with nil for a key that has no entry.
  /// - Returns: The newest commit that the entries, and the absence of others, reveal.
  @inline(__always)
  mutating func visit(
    _ cursor: inout EntryCursor, of bytes: RawSpan, in snapshot: Snapshot?, _ map: inout EntryMap,
    _ append: (EntryView?) -> Bool
  ) throws(StorageError) -> UInt64 {
    switch cursor {
    case .scan(var scan):
      let newest = try visit(&scan, in: snapshot, &map, append)
      cursor = .scan(scan)
      return newest
    case .keys(var keys):
      let newest = visit(&keys, of: bytes, &map, append)
      cursor = .keys(keys)
      return newest
    case .keptKeys(var keys):
      let newest = try visit(&keys, in: snapshot, &map, append)
      cursor = .keptKeys(keys)
      return newest
    case .handles(let handles, var next):
      if let snapshot { try map.check(snapshot) }
      var newest: UInt64 = 0
      while next < handles.count {
        let entry = unexpiredEntry(at: handles[next], &map)
        guard append(entry) else { break }
        newest = max(newest, entry?.revision ?? 0)
        next += 1
      }
      cursor = .handles(handles, next: next)
      return newest
    }
  }

  @inline(__always)
  private mutating func visit(
    _ scan: inout EntryCursor.Scan, in snapshot: Snapshot?, _ map: inout EntryMap, _ append: (EntryView?) -> Bool
  ) throws(StorageError) -> UInt64 {
    var isFull = false
    var newest: UInt64 = 0
    let visited = try map.scan(ranks: scan.ranks, reverse: scan.isReverse, in: snapshot, now: now) { entry in
      isFull = !append(entry)
      if isFull { return false }
      newest = max(newest, entry.revision)
      return true
    }
    scan.dropFirst(isFull ? visited - 1 : visited)
    return newest
  }

  @inline(__always)
  private mutating func visit(
    _ keys: inout KeyList, of bytes: RawSpan, _ map: inout EntryMap, _ append: (EntryView?) -> Bool
  ) -> UInt64 {
    var newest: UInt64 = 0
    var (visitedCount, prefetchedCount) = (0, 0)
    while visitedCount < Self.maxKeysPerPart {
      if prefetchedCount == 0 { prefetchedCount = prefetch(keys, of: bytes, &map) }
      prefetchedCount -= 1
      var remaining = keys
      guard let key = remaining.next(bytes) else { break }
      let entry = map.get(bytes.extracting(key), now: now)
      guard append(entry) else { break }
      newest = max(newest, entry?.revision ?? map.revisions.lastRemoval)
      keys = remaining
      visitedCount += 1
    }
    // Keys that are missing from later parts are missing as of now.
    return keys.remaining > 0 ? max(newest, map.revisions.lastRemoval) : newest
  }

  private mutating func visit(
    _ keys: inout EntryCursor.KeptKeys, in snapshot: Snapshot?, _ map: inout EntryMap, _ append: (EntryView?) -> Bool
  ) throws(StorageError) -> UInt64 {
    guard let snapshot else { preconditionFailure("kept keys are looked up in a snapshot") }
    try map.check(snapshot)
    var newest: UInt64 = 0
    for _ in 0..<Self.maxKeysPerPart {
      var rest = keys.list
      guard let key = unsafe rest.next(keys.bytes.span.bytes) else { break }
      let handle = unsafe try map.handle(of: keys.bytes.span.bytes.extracting(key), in: snapshot)
      let entry = unexpiredEntry(at: handle, &map)
      guard append(entry) else { break }
      newest = max(newest, entry?.revision ?? 0)
      keys.list = rest
    }
    return newest
  }

  private func unexpiredEntry(at handle: UInt32, _ map: inout EntryMap) -> EntryView? {
    guard handle != 0 else { return nil }
    let entry = map.entry(at: handle)
    return entry.isExpired(at: now) ? nil : entry
  }

  /// Returns the handles of the entries that a list of keys has left, 0 for absent ones.
  mutating func handles(of list: KeyList, in bytes: RawSpan, _ map: inout EntryMap) -> [UInt32] {
    var keys = list
    var handles: [UInt32] = []
    handles.reserveCapacity(keys.remaining)
    while let key = keys.next(bytes) { handles.append(map.handle(of: bytes.extracting(key), now: now) ?? 0) }
    return handles
  }

  // MARK: Changes

  mutating func watch(
    _ request: WatchRequest, in bytes: RawSpan, _ store: Store, _ map: inout EntryMap
  ) -> Detour {
    guard request.prefix.count <= Key.maxSize else { return Self.failPrefix(request.prefix.count) }
    do throws(StorageError) { try map.checkWatching() } catch { return Detour(error, revealing: map.revisions.last) }
    // The reply reveals the store's revision, so that one must still be there after a crash.
    let revision = map.revisions.last
    let feed = map.beginWatch(
      limit: limits.maxChangeFeedBytes, notifiesImmediately: !(store.commitWriter?.gatesReplies ?? false))
    let from = request.from == 0 ? revision + 1 : request.from
    let loss = Self.loss(request, from: from, in: store, revision: revision, feed)
    let watch = Watch(
      prefix: bytes.extracting(request.prefix).toArray(), isKeysOnly: request.isKeysOnly,
      position: loss == nil ? feed.position(of: from) : 0, throughRevision: min(from - 1, UInt64(Int64.max)),
      startRevision: revision)
    if loss != nil { map.endWatch() }
    let start = WatchStart(incarnation: request.incarnation == nil ? nil : store.incarnation, loss: loss)
    return .changes(watch, start, revealing: revision)
  }

  /// Returns why a request can't be served; nil if it can.
  /// - Parameters:
  ///   - from: The first revision whose changes are wanted.
  ///   - revision: The store's revision.
  private static func loss(
    _ request: WatchRequest, from: UInt64, in store: Store, revision: UInt64, _ feed: ChangeFeed
  ) -> WatchLoss? {
    if let incarnation = request.incarnation, incarnation != 0, incarnation != store.incarnation {
      return .otherIncarnation(revision)
    }
    if from <= feed.lastDroppedRevision { return .dropped(through: feed.lastDroppedRevision) }
    return from - 1 <= revision ? nil : .beyondRevision(revision, from: from)
  }
}

/// How a watch begins.
struct WatchStart {
  /// That of the store, if the client wants to know it.
  let incarnation: UInt64?
  /// Why the watch can't be served; nil if it can.
  let loss: WatchLoss?
}

/// Why a watch can't deliver what it requests.
enum WatchLoss {
  /// The changes up to this revision are no longer kept.
  case dropped(through: UInt64)
  /// The watch is from a revision that the store, which has this one, is far from.
  case beyondRevision(UInt64, from: UInt64)
  /// The client has watched another incarnation. This one has this revision.
  case otherIncarnation(UInt64)

  /// The newest revision with a change that the watch misses, or the store's revision.
  var revision: UInt64 {
    switch self {
    case .dropped(let revision), .beyondRevision(let revision, _), .otherIncarnation(let revision): revision
    }
  }

  var failure: CommandFailure {
    let reason =
      switch self {
      case .dropped(let revision): "changes up to revision \(revision) are no longer kept"
      case .beyondRevision(let revision, let from):
        "the watch is from revision \(from), but the store has only reached revision \(revision)"
      case .otherIncarnation:
        "this is not the store that was watched before: it has been created again, or may have lost its last changes"
      }
    return CommandFailure(.changesLost, "\(reason); read the store and watch it from \(revision + 1)")
  }
}

extension EntryView {
  func isExpired(at now: UInt64) -> Bool { expiry != 0 && expiry <= now }
}

extension ScanRequest {
  /// The ranks of the requested page among the ranks that match.
  fileprivate func page(of matches: Range<Int>) -> Range<Int> {
    let skipped = Int(clamping: min(offset, UInt64(matches.count)))
    let taken = min(limit, matches.count - skipped)
    if isReverse {
      let end = matches.upperBound - skipped
      return end - taken..<end
    }
    let start = matches.lowerBound + skipped
    return start..<start + taken
  }
}
