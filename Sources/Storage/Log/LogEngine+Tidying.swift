import Platform

/// What is done between commits: room ahead of need, and space given back.
extension LogEngine {
  package func performMaintenance(_ store: Store) throws(EngineError) -> Bool {
    if let compaction { return try goOn(compaction, store) }
    try prepareAhead()
    let (live, isDropped, revision) = store.access { map in (Self.liveBytes(of: map), map.isDropped, map.revision) }
    guard !isDropped else { return false }
    noteFigures { $0.liveBytes = live }
    if var walk = survey {
      let hasMore = store.access { map in walk.step(map) }
      survey = hasMore ? walk : nil
      if !hasMore {
        for index in walk.liveBytes.indices { sealed[index].liveBytes = walk.liveBytes[index] }
        isSurveyed = true
      }
      return true
    }
    let segmentBytes = sizes.segment(logBytes: byteCount)
    let plan = CompactionPolicy(sealed, segmentBytes)
    if let run = plan.smallOnes() { return try begin(run, store, revision: revision) }
    guard plan.isTooLarge(live: live, logBytes: byteCount) else {
      isReserveLent = false
      return false
    }
    if isSurveyed {
      if let run = plan.run(live: live, logBytes: byteCount) { return try begin(run, store, revision: revision) }
      isSurveyed = false
      isReserveLent = false
      quietBytes = byteCount
      return false
    }
    guard quietBytes == 0 || byteCount >= quietBytes + segmentBytes else { return false }
    survey = LivenessScan(sealed)
    return true
  }

  /// What the live entries would take as records of their own.
  private static func liveBytes(of map: borrowing EntryMap) -> Int {
    map.keyBytes + map.valueBytes
      + map.order.count * (CommitBuffer.recordHeaderByteCount + 8 + CommitBuffer.operationHeaderByteCount)
  }

  /// Has the next segment ready before the active one is full. It doesn't have to be.
  private func prepareAhead() throws(EngineError) {
    guard prepared == nil, active.map({ $0.room < $0.capacity / 2 }) ?? true else { return }
    do throws(EngineError) { try makeRoom() } catch { if error != .noSpace { throw error } }
  }

  func begin(_ run: Range<Int>, _ store: Store, revision: UInt64) throws(EngineError) -> Bool {
    do throws(SystemError) {
      let compaction = try Compaction(
        folder, openFolder, sealed, run: run, identity: identity, revision: revision)
      self.compaction = compaction
      compaction.copy(from: store, on: runner, bytesPerSecond: bytesPerSecond)
      return true
    } catch {
      return try giveUp(error)
    }
  }

  /// How fast a compaction may be: as fast as it can when the log grows in spite of it.
  private var bytesPerSecond: Int {
    let isUrgent = byteCount > 4 * shared.withLock { $0.liveBytes } + 4 * sizes.segment(logBytes: byteCount)
    return isUrgent ? .max : sizes.compactionBytesPerSecond
  }

  private func goOn(_ compaction: Compaction, _ store: Store) throws(EngineError) -> Bool {
    switch compaction.phase {
    case .copying, .replacing: return false
    case .copied:
      // What made the rest dead must outlive it. Commits that are not written yet come first, then.
      guard lastRevision >= compaction.neededRevision else { return false }
      if syncedRevision < compaction.neededRevision { try sync() }
      compaction.replace(store, on: runner)
      return true
    case .replaced(let byteCount): note(compaction, byteCount: byteCount, in: store)
    case .failed(.damaged(let what)): throw .failed(what)
    case .failed(.valueDamaged): return try leaveAlone(compaction)
    case .failed(.system(let error)): return try giveUp(error)
    case .failed(.unfinished(let error)): throw .failed("\(error) (\(folder.path))")
    }
    return true
  }

  /// The segment stands for its sources from now on.
  private func note(_ compaction: Compaction, byteCount: Int, in store: Store) {
    // Only now: what is not known to be on the disk must not be all that there is.
    store.place(compaction.placed)
    let header = compaction.header
    sealed.replaceSubrange(
      compaction.run,
      with: [
        SealedSegment(
          number: header.number, lastNumber: header.lastNumber, firstRevision: header.firstRevision,
          lastRevision: header.lastRevision, sweptRevision: header.sweptRevision, byteCount: byteCount,
          tombstoneBytes: compaction.tombstoneBytes,
          liveBytes: max(0, byteCount - compaction.tombstoneBytes))
      ])
    self.compaction = nil
    isReserveLent = false
    noteFigures { figures in
      figures.compactions += 1
      figures.compactionBytes += byteCount
    }
  }

  /// A value that can't be read is no failure of the log: its segments stay as they are, and whoever asks for it is told.
  private func leaveAlone(_ compaction: Compaction) throws(EngineError) -> Bool {
    for index in compaction.run { sealed[index].hasDamagedValue = true }
    self.compaction = nil
    isReserveLent = false
    try attempt(folder.compactionPath) { () throws(SystemError) in try folder.files.remove(folder.compactionPath) }
    return true
  }

  /// A full disk is no failure: the reserve is there for it, and without it compaction waits. So it does for descriptors.
  private func giveUp(_ error: SystemError) throws(EngineError) -> Bool {
    compaction = nil
    guard error.isNoSpace else { throw .failed("\(error) (\(folder.compactionPath))") }
    try attempt(folder.path) { () throws(SystemError) in
      if try folder.files.kind(of: folder.compactionPath) != nil { try folder.files.remove(folder.compactionPath) }
      if !error.isNoDescriptor, try folder.files.kind(of: folder.reservePath) != nil {
        try folder.files.remove(folder.reservePath)
      }
    }
    // With the reserve's space the next attempt may come through.
    let hadReserve = !error.isNoDescriptor && reserveBytes > 0
    if hadReserve { reserveBytes = 0 }
    isReserveLent = hadReserve
    if !hadReserve {
      quietBytes = byteCount
      isSurveyed = false
    }
    return hadReserve
  }
}
