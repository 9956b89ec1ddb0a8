import Platform

/// How segments begin and end.
extension LogEngine {
  package func makeRoom() throws(EngineError) {
    let size = min(LogSizes.limit, max(sizes.segment(logBytes: byteCount), 2 * (prepared?.capacity ?? 0)))
    guard !isReserveLent else { throw .noSpace }
    try makeReserve()
    try prepare(atMost: size)
    noteFigures { _ in }
  }

  /// Where the disk has no room for as much, a smaller segment is better than none.
  private func prepare(atMost size: Int) throws(EngineError) {
    var capacity = size
    while true {
      do throws(EngineError) { return try prepare(capacity: capacity) } catch {
        capacity /= 2
        guard error == .noSpace, capacity >= sizes.minSegmentSize, capacity > prepared?.capacity ?? 0 else {
          throw error
        }
      }
    }
  }

  /// Has space set aside for a compaction before the log takes more: a full disk could not be compacted else.
  private func makeReserve() throws(EngineError) {
    let size = sizes.segment(logBytes: byteCount)
    guard byteCount >= sizes.reserveFrom, reserveBytes < size else { return }
    let before = reserveBytes
    var isThere = true
    do throws(SystemError) {
      isThere = try folder.files.kind(of: folder.reservePath) != nil
      let file = try folder.files.open(folder.reservePath, isThere ? .writing : .making)
      do throws(SystemError) { try file.allocate(size) } catch {
        // What there was of it will do.
        guard error.isNoSpace, before > 0 else { throw error }
        return try file.truncate(to: before)
      }
      reserveBytes = size
    } catch {
      if !isThere { try? folder.files.remove(folder.reservePath) }
      if error.isNoSpace { throw .noSpace }
      throw .failed("\(error) (\(folder.reservePath))")
    }
  }

  /// Has a file of that capacity be ready: every byte of it has its place on the disk.
  private func prepare(capacity: Int) throws(EngineError) {
    if let prepared, prepared.capacity >= capacity { return }
    let path = folder.nextPath
    do throws(SystemError) {
      let file: any File
      if let prepared {
        file = prepared.file
      } else {
        if try folder.files.kind(of: path) != nil { try folder.files.remove(path) }
        file = try folder.files.open(path, .making)
      }
      do throws(SystemError) {
        try file.allocate(capacity)
      } catch {
        // What was taken on the way is given back; a failure to do so costs nothing but the space.
        if prepared == nil { try? folder.files.remove(path) } else { try? file.truncate(to: prepared?.capacity ?? 0) }
        throw error
      }
      try file.sync()
      prepared = PreparedSegment(file: file, capacity: capacity)
    } catch {
      if error.isNoSpace { throw .noSpace }
      throw .failed("\(error) (\(path))")
    }
  }

  /// Seals the active segment and goes on in the prepared one, which has room for a record of that size.
  func advance(toHold byteCount: Int) throws(EngineError) {
    let overhead = SegmentHeader.byteCount + SyncMark.byteCount + SegmentTrailer.byteCount
    if (prepared?.room ?? 0) < byteCount {
      try prepare(capacity: max(sizes.segment(logBytes: self.byteCount), byteCount + overhead))
    }
    try seal()
    guard let prepared else { preconditionFailure("no segment was prepared") }
    let header = SegmentHeader(
      identity: identity, number: nextNumber, lastNumber: nextNumber,
      firstRevision: max(lastRevision, lastRevisionOfActive) + 1)
    let path = folder.segmentPath(nextNumber)
    try attempt(path) { () throws(SystemError) in
      try prepared.file.write(header.bytes, at: 0)
      try prepared.file.sync()
      try folder.files.rename(folder.nextPath, to: path)
      try openFolder.sync()
    }
    active = ActiveSegment(
      values: ValueFile(prepared.file, path: path), number: nextNumber, firstRevision: header.firstRevision,
      capacity: prepared.capacity)
    self.prepared = nil
    nextNumber += 1
  }

  /// Ends the active segment. What it has is on the disk before the trailer says so.
  func seal() throws(EngineError) {
    guard let ended = active else { return }
    try sync()
    let last = max(lastRevisionOfActive, ended.firstRevision - 1)
    let trailer = SegmentTrailer(offset: ended.end, lastRevision: last, identity: identity)
    let byteCount = ended.end + SegmentTrailer.byteCount
    try attempt(folder.segmentPath(ended.number)) { () throws(SystemError) in
      try ended.file.write(trailer.bytes, at: ended.end)
      try ended.file.sync()
      try ended.file.truncate(to: byteCount)
    }
    sealed.append(
      SealedSegment(
        number: ended.number, lastNumber: ended.number, firstRevision: ended.firstRevision, lastRevision: last,
        sweptRevision: 0, byteCount: byteCount, tombstoneBytes: nil, liveBytes: byteCount))
    active = nil
  }

  package func endWork() { runner.end() }

  /// Ends the log for good, so that the next start finds all of it sealed. The sink can't be used afterwards.
  ///
  /// Not needed for anything but to tell damage at the very end from what a crash leaves.
  package func close() throws(EngineError) {
    guard let active else { return }
    if active.end > SegmentHeader.byteCount { try seal() }
  }
}
