import Glibc
import Platform

/// Looks at a log that nobody has open, and changes nothing in it.
package enum LogCheck {
  /// One segment, as it is.
  package struct Segment: Sendable, Equatable {
    package var path: String
    package var byteCount = 0
    /// What can be read, from the file's beginning on.
    package var intactBytes = 0
    /// Whole ones, but for marks.
    package var records = 0
    package var firstRevision: UInt64 = 0
    package var lastRevision: UInt64 = 0
    package var isSealed = false
    /// Where the first damage is, and what it is.
    package var damage: Damage?
    /// What a crash left behind the last record, of the last segment only: a start cuts it off.
    package var tornBytes = 0
    /// What can't be read, from damaged places to the next whole records.
    package var lostBytes = 0
  }

  package struct Damage: Sendable, Equatable {
    package var offset: Int
    package var what: String
  }

  package struct Report: Sendable, Equatable {
    package var segments: [Segment] = []
    /// Segments that aren't there, by the path they should have; of a longer gap, the first few.
    package var missing: [String] = []

    package var isIntact: Bool { missing.isEmpty && segments.allSatisfy { $0.damage == nil } }
  }

  /// How many missing segments of a gap are named.
  private static let namedOfGap: UInt64 = 16

  /// Reads all segments of a folder.
  /// - Parameter tell: called with how many bytes of records were read.
  package static func check(
    _ path: String, files: any FileSystem, tell: (Int) -> Void = { _ in }
  ) throws(LogError) -> Report {
    unsafe try walk(path, files, tell, nil)
  }

  /// Copies every intact record into a new log, in a folder that is empty or not there yet. Records behind a damaged place in a segment
  /// are looked for, too.
  /// - Parameter tell: called with how many bytes of records were read.
  /// - Returns: what the old one is like, and how many records were copied.
  package static func salvage(
    _ path: String, to target: String, files: any FileSystem, tell: (Int) -> Void = { _ in }
  ) throws(LogError) -> (report: Report, records: Int) {
    try LogError.on(target) { () throws(SystemError) in
      if try files.kind(of: target) == nil { return }
      guard try files.list(target).isEmpty else { throw SystemError("mkdir", errno: EEXIST) }
    }
    var map = EntryMap()
    let (engine, _) = try LogEngine.open(target, files: files, now: 0, unixNow: 0, into: &map)
    var records = 0
    var lastRevision: UInt64 = 0
    let report = unsafe try walk(path, files, tell) { (bytes, revision) throws(LogError) in
      // A record found behind damage may be older than one that is copied already.
      guard revision > lastRevision else { return }
      lastRevision = revision
      records += 1
      do throws(EngineError) {
        while engine.room < bytes.count { try engine.makeRoom() }
        unsafe _ = try engine.write(bytes, last: revision, separatedCount: 0, syncs: false)
      } catch {
        throw .failed(path: target, SystemError("\(error)", errno: error == .noSpace ? 28 : 5))
      }
    }
    // The counter goes on where it was, even if what had the last revision is lost.
    engine.lastRevisionOfActive = report.segments.map(\.lastRevision).max() ?? 0
    do throws(EngineError) { try engine.seal() } catch {
      throw .failed(path: target, SystemError("\(error)", errno: 5))
    }
    return (report, records)
  }

  /// What is done with an intact record that is no mark, and its revision.
  private typealias RecordBody = (UnsafeRawBufferPointer, UInt64) throws(LogError) -> Void

  /// Reads all segments.
  /// - Parameter body: called with every intact record.
  private static func walk(
    _ path: String, _ files: any FileSystem, _ tell: (Int) -> Void, _ body: RecordBody?
  ) throws(LogError) -> Report {
    let folder = LogFolder(files: files, path: path)
    let numbers = try LogError.on(path) { () throws(SystemError) in try folder.segmentNumbers() }
    var report = Report()
    var next: UInt64 = 1
    var identity: UInt64?
    for number in numbers where number >= next {
      for missing in next..<min(number, next + namedOfGap) { report.missing.append(folder.segmentPath(missing)) }
      let path = folder.segmentPath(number)
      let (file, start, byteCount) = try folder.openSegment(path)
      let (decoded, what) = SegmentHeader.decode(start)
      var segment = Segment(path: path, byteCount: byteCount)
      if decoded == nil { segment.damage = Damage(offset: 0, what: what) }
      // The records of a segment whose header is gone may be good all the same.
      let header =
        decoded ?? SegmentHeader(identity: identity ?? 0, number: number, lastNumber: number, firstRevision: 1)
      if header.number != number {
        segment.damage = Damage(offset: 24, what: "the file is named for segment \(number) and is \(header.number)")
      }
      if let identity, decoded != nil, header.identity != identity {
        segment.damage = Damage(offset: 16, what: "the segment belongs to another store")
      }
      if decoded != nil, identity == nil { identity = header.identity }
      let found = FoundSegment(files: files, path: path, file: file, byteCount: byteCount, header: header)
      unsafe try read(found, isLast: number == numbers.last, into: &segment, tell, body)
      report.segments.append(segment)
      next = max(number, header.lastNumber) + 1
    }
    return report
  }

  private static func read(
    _ found: FoundSegment, isLast: Bool, into segment: inout Segment, _ tell: (Int) -> Void, _ body: RecordBody?
  ) throws(LogError) {
    var reader = SegmentReader(found, verifiesValues: true)
    segment.firstRevision = found.header.firstRevision
    while true {
      unsafe try readPieces(&reader, of: found, into: &segment, tell, body)
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
        guard tail.byteCount > 0, try skip(&reader, found) else {
          segment.lostBytes += tail.byteCount
          return
        }
        segment.lostBytes += reader.end - end
      }
    }
  }

  private static func readPieces(
    _ reader: inout SegmentReader, of found: FoundSegment, into segment: inout Segment, _ tell: (Int) -> Void,
    _ body: RecordBody?
  ) throws(LogError) {
    while true {
      let piece = try reader.next()
      if piece.isEmpty { return }
      tell(reader.end - piece.offset)
      guard let body = unsafe body else {
        var marks = 0
        let records = piece.visit { operation, _, _ in marks += operation.kind == SyncMark.kind ? 1 : 0 }
        segment.records += records - marks
        continue
      }
      guard piece.isSparse else {
        unsafe segment.records += try visit(piece.bytes, body)
        continue
      }
      let (offset, byteCount) = (piece.offset, reader.end - piece.offset)
      let bytes = try LogError.on(found.path) { () throws(SystemError) in
        try found.file.bytes(at: offset, count: byteCount)
      }
      segment.records += unsafe try bytes.withBytes { (bytes) throws(LogError) in
        unsafe try visit(bytes, body)
      }
    }
  }

  /// Calls `body` with every one of whole records, but for marks.
  /// - Returns: how many they are.
  private static func visit(_ records: UnsafeRawBufferPointer, _ body: RecordBody) throws(LogError) -> Int {
    var (start, count) = (0, 0)
    while start < records.count {
      let end = unsafe start + records.recordByteCount(at: start)
      guard end <= records.count else { break }
      let record = unsafe UnsafeRawBufferPointer(rebasing: records[start..<end])
      start = end
      guard unsafe record[16] != SyncMark.kind else { continue }
      unsafe try body(record, record.integer(at: 8, as: UInt64.self))
      count += 1
    }
    return count
  }

  /// Goes on at the next whole record behind a damaged place. False when there is none.
  ///
  /// Where the damaged record ends is known when only its values are damaged. They aren't looked into: what a client wrote may look like
  /// records, and each may claim as much as there is.
  private static func skip(_ reader: inout SegmentReader, _ found: FoundSegment) throws(LogError) -> Bool {
    if let end = reader.damageEnd {
      reader.resume(at: end)
      return true
    }
    let pieceByteCount = 1 << 20
    var place = reader.end + 1
    let (byteCount, previous) = (reader.byteCount, reader.lastRevision)
    while place < byteCount {
      let count = min(2 * pieceByteCount, byteCount - place)
      let start = place
      let bytes = try LogError.on(found.path) { () throws(SystemError) in try found.file.bytes(at: start, count: count)
      }
      let offset = unsafe try bytes.withBytes { (bytes) throws(LogError) -> Int? in
        for offset in 0..<min(pieceByteCount, bytes.count) {
          let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[offset...])
          switch unsafe LogRecord.check(rest, remaining: byteCount - start - offset, after: previous) {
          case .whole: return offset
          case .sparse where try isWhole(found, at: start + offset, after: previous): return offset
          default: continue
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

  /// Whether a record with values apart is there, all of it intact.
  private static func isWhole(
    _ found: FoundSegment, at place: Int, after previous: UInt64
  ) throws(LogError) -> Bool {
    var reader = SegmentReader(found, verifiesValues: true)
    reader.resume(at: place)
    reader.lastRevision = previous
    return try !reader.next().isEmpty
  }
}
