import Platform

/// Looks at a log that nobody has open, and changes nothing in it.
package enum LogCheck {
  /// One segment, as it is.
  package struct Segment: Sendable, Equatable {
    package var path: String
    package var byteCount = 0
    /// What can be read, from the file's beginning on.
    package var intactBytes = 0
    package var records = 0
    package var firstRevision: UInt64 = 0
    package var lastRevision: UInt64 = 0
    package var isSealed = false
    /// Where the first damage is, and what it is.
    package var damage: Damage?
    /// What a crash left behind the last record, of the last segment only: a start cuts it off.
    package var tornBytes = 0
  }

  package struct Damage: Sendable, Equatable {
    package var offset: Int
    package var what: String
  }

  package struct Report: Sendable, Equatable {
    package var segments: [Segment] = []
    /// Segments that aren't there, by the path they should have.
    package var missing: [String] = []

    package var isIntact: Bool { missing.isEmpty && segments.allSatisfy { $0.damage == nil } }
  }

  /// Reads all segments of a folder.
  package static func check(_ path: String, files: any FileSystem) throws(LogError) -> Report {
    unsafe try walk(path, files) { _, _ in }
  }

  /// Copies every intact record into a new log, in a folder that must not be there yet. Records behind a damaged place in a segment are
  /// looked for, too.
  /// - Returns: what the old one is like, and how many records were copied.
  package static func salvage(
    _ path: String, to target: String, files: any FileSystem
  ) throws(LogError) -> (report: Report, records: Int) {
    guard try LogError.on(target, { () throws(SystemError) in try files.kind(of: target) }) == nil else {
      throw .failed(path: target, SystemError("mkdir", errno: 17))
    }
    var map = EntryMap()
    let (sink, _) = try LogSink.open(target, files: files, now: 0, unixNow: 0, into: &map)
    var records = 0
    var lastRevision: UInt64 = 0
    let report = unsafe try walk(path, files) { (bytes, revision) throws(LogError) in
      // A record found behind damage may be older than one that is copied already.
      guard revision > lastRevision, unsafe bytes[16] != SyncMark.kind else { return }
      lastRevision = revision
      records += 1
      do throws(SinkError) {
        while sink.room < bytes.count { try sink.makeRoom() }
        unsafe try sink.write(bytes, last: revision, syncs: false)
      } catch {
        throw .failed(path: target, SystemError("\(error)", errno: error == .noSpace ? 28 : 5))
      }
    }
    // The counter goes on where it was, even if what had the last revision is lost.
    sink.lastRevisionOfActive = report.segments.map(\.lastRevision).max() ?? 0
    do throws(SinkError) { try sink.seal() } catch { throw .failed(path: target, SystemError("\(error)", errno: 5)) }
    return (report, records)
  }

  /// Calls `body` with every intact record, and its revision.
  private static func walk(
    _ path: String, _ files: any FileSystem, _ body: (UnsafeRawBufferPointer, UInt64) throws(LogError) -> Void
  ) throws(LogError) -> Report {
    let folder = LogFolder(files: files, path: path)
    let numbers = try LogError.on(path) { () throws(SystemError) in try folder.segmentNumbers() }
    var report = Report()
    var next: UInt64 = 1
    var identity: UInt64?
    for number in numbers where number >= next {
      for missing in next..<number { report.missing.append(folder.segmentPath(missing)) }
      let path = folder.segmentPath(number)
      let (file, bytes, byteCount) = try LogError.on(path) { () throws(SystemError) in
        let file = try files.open(path, .reading)
        return (file, try file.read(SegmentHeader.byteCount, at: 0), try file.byteCount())
      }
      let (decoded, what) = SegmentHeader.decode(bytes)
      var segment = Segment(path: path, byteCount: byteCount)
      if decoded == nil { segment.damage = Damage(offset: 0, what: what) }
      // The records of a segment whose header is gone may be good all the same.
      let header =
        decoded ?? SegmentHeader(identity: identity ?? 0, number: number, lastNumber: number, firstRevision: 1)
      if let identity, decoded != nil, header.identity != identity {
        segment.damage = Damage(offset: 16, what: "the segment belongs to another store")
      }
      if decoded != nil, identity == nil { identity = header.identity }
      let found = FoundSegment(files: files, path: path, file: file, byteCount: byteCount, header: header)
      unsafe try read(found, isLast: number == numbers.last, into: &segment, body)
      report.segments.append(segment)
      next = header.lastNumber + 1
    }
    return report
  }

  private static func read(
    _ found: FoundSegment, isLast: Bool, into segment: inout Segment,
    _ body: (UnsafeRawBufferPointer, UInt64) throws(LogError) -> Void
  ) throws(LogError) {
    var reader = SegmentReader(found)
    segment.firstRevision = found.header.firstRevision
    while true {
      unsafe try readPieces(&reader, into: &segment, body)
      if segment.damage == nil { segment.intactBytes = reader.end }
      segment.lastRevision = max(segment.lastRevision, reader.lastRevision)
      let (end, byteCount) = (reader.end, reader.byteCount)
      switch reader.state {
      case .sealed(let trailer):
        segment.isSealed = true
        segment.lastRevision = max(segment.lastRevision, trailer.lastRevision)
        return
      case .open, .more, .damaged:
        let tail = try LogError.on(found.path) { () throws(SystemError) in
          try TornTail(of: found.file, from: end, fileByteCount: byteCount, identity: found.header.identity)
        }
        if isLast, !tail.wasSynced, segment.damage == nil {
          segment.tornBytes = tail.byteCount
          return
        }
        var what = "the segment doesn't end as it should"
        if case .damaged(let reason) = reader.state { what = reason }
        if segment.damage == nil { segment.damage = Damage(offset: end, what: what) }
        guard tail.byteCount > 0, try skip(&reader, found) else { return }
      }
    }
  }

  private static func readPieces(
    _ reader: inout SegmentReader, into segment: inout Segment,
    _ body: (UnsafeRawBufferPointer, UInt64) throws(LogError) -> Void
  ) throws(LogError) {
    while true {
      let piece = unsafe try reader.next()
      if piece.count == 0 { return }
      var start = 0
      while start < piece.count {
        let end = unsafe start + CommitBuffer.recordHeaderByteCount + Int(piece.integer(at: start, as: UInt32.self))
        let record = unsafe UnsafeRawBufferPointer(rebasing: piece[start..<end])
        segment.records += 1
        unsafe try body(record, record.integer(at: 8, as: UInt64.self))
        start = end
      }
    }
  }

  /// Goes on at the next whole record behind a damaged place. False when there is none.
  private static func skip(_ reader: inout SegmentReader, _ found: FoundSegment) throws(LogError) -> Bool {
    let pieceByteCount = 1 << 20
    var place = reader.end + 1
    let (byteCount, previous) = (reader.byteCount, reader.lastRevision)
    while place < byteCount {
      let count = min(2 * pieceByteCount, byteCount - place)
      let start = place
      let bytes = try LogError.on(found.path) { () throws(SystemError) in try found.file.read(count, at: start) }
      let offset = unsafe bytes.span.bytes.withUnsafeBytes { bytes -> Int? in
        for offset in 0..<min(pieceByteCount, bytes.count) {
          let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[offset...])
          if case .whole = unsafe LogRecord.check(rest, remaining: byteCount - start - offset, after: previous) {
            return offset
          }
        }
        return nil
      }
      if let offset {
        reader.resume(at: place + offset)
        return true
      }
      place += pieceByteCount
    }
    return false
  }
}
