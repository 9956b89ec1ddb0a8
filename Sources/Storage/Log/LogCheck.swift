import Glibc
import Platform

/// A check of a log that no process has open. It changes nothing.
package enum LogCheck {
  /// The state of one segment.
  package struct Segment: Sendable, Equatable {
    package var path: String
    package var byteCount = 0
    /// The size of the readable part at the beginning of the file.
    fileprivate var intactBytes = 0
    /// The number of intact records, not counting sync marks.
    package var records = 0
    package var lastRevision: UInt64 = 0
    package var isSealed = false
    /// The first damage.
    package var damage: Damage?
    /// The size of what a crash has left after the last record, in the last segment only. A start truncates it.
    package var tornBytes = 0
    /// The number of unreadable bytes, from each damaged place to the next intact record.
    package var lostBytes = 0
  }

  package struct Damage: Sendable, Equatable {
    package var offset: Int
    package var reason: String
  }

  package struct Report: Sendable {
    package var segments: [Segment] = []
    /// The expected paths of missing segments; of a long gap, the first few.
    package var missing: [String] = []
    /// The manifest's path.
    fileprivate var manifestPath = ""
    /// The damage of the manifest.
    package var manifestDamage: Damage?
    /// Why the segments, each of which is intact, aren't a whole log, and the file that shows it.
    fileprivate var contradiction: (path: String, damage: Damage)?
    /// The number of lost operations, as far as it is known. The entries that they wrote are older than they were, or
    /// absent.
    package var lostOperations = 0
    /// The revision that the log once had, according to its manifest.
    fileprivate var revision: UInt64 = 0

    package var isIntact: Bool {
      missing.isEmpty && manifestDamage == nil && contradiction == nil && segments.allSatisfy { $0.damage == nil }
    }
  }

  /// Reads all segments in a folder.
  /// - Parameter progress: Called with the size of each chunk of records that was read.
  package static func check(
    _ path: String, files: any FileSystem, progress: (Int) -> Void = { _ in }
  ) throws(LogError) -> Report {
    unsafe try SegmentWalk.run(LogFolder(files: files, path: path), progress, onRecord: nil)
  }

  /// Copies every intact record into a new log, in an existing, empty folder. Also searches for records after a damaged
  /// place in a segment.
  /// - Parameter progress: Called with the size of each chunk of records that was read.
  /// - Returns: A report on the original, and the number of copied records.
  package static func salvage(
    _ path: String, to target: String, files: any FileSystem, progress: (Int) -> Void = { _ in }
  ) throws(LogError) -> (report: Report, records: Int) {
    try LogError.wrapping(target) { () throws(SystemError) in
      guard try files.list(target).isEmpty else { throw SystemError("mkdir", errno: EEXIST) }
    }
    var map = EntryMap()
    let (engine, _) = try LogEngine.open(target, files: files, now: 0, unixNow: 0, into: &map)
    var records = 0
    var lastRevision: UInt64 = 0
    let report = unsafe try SegmentWalk.run(LogFolder(files: files, path: path), progress) {
      (bytes, revision) throws(LogError) in
      // A record found after damage may be older than one that is already copied.
      guard revision > lastRevision else { return }
      lastRevision = revision
      records += 1
      do throws(EngineError) {
        while engine.reservedByteCount < bytes.count { try engine.reserveSpace() }
        unsafe _ = try engine.write(bytes, last: revision, separatedCount: 0, syncs: false)
      } catch {
        throw .failed(path: target, SystemError("\(error)", errno: error == .noSpace ? 28 : 5))
      }
    }
    // The store's counter continues where it was, even if the record with the last revision is lost.
    let last = report.segments.map(\.lastRevision).max() ?? 0
    do throws(EngineError) { try engine.seal(lastRevision: max(last, report.revision)) } catch {
      throw .failed(path: target, SystemError("\(error)", errno: 5))
    }
    return (report, records)
  }
}

/// Counts what damaged places of a log have lost.
private struct LossCount {
  /// The number of bytes of a damaged place that are examined.
  static let examinedByteCount = 1 << 20

  /// The number of lost operations, as far as it is known.
  private(set) var count = 0
  /// What was lost since the last intact record: operations and bytes, which are nil if they are unknown.
  private var open: (operationCount: Int, byteCount: Int?)?
  /// The last revision of the intact records.
  private var lastRevision: UInt64 = 0

  /// Records that bytes are lost, or a file of an unknown size.
  mutating func add(_ byteCount: Int?, operationCount: Int = 0) {
    let (operations, bytes) = open ?? (0, 0)
    open = (operations + operationCount, bytes.flatMap { sum in byteCount.map { sum + $0 } })
  }

  /// Records that there are intact records, or an intact end of the log.
  mutating func pass(from first: UInt64, to last: UInt64) {
    if let (operationCount, byteCount) = open {
      count += DamagedRecords.lossCount(
        operationCount, after: lastRevision, before: first, byteCount: byteCount)
      open = nil
    }
    lastRevision = max(lastRevision, last)
  }

  /// Records the revision that the log once had.
  mutating func finish(at revision: UInt64, isIntact: Bool) {
    if !isIntact, revision > lastRevision { add(nil) }
    pass(from: revision + 1, to: revision)
  }
}

/// Reads one segment for a check, beyond damaged places.
private struct SegmentWalk: ~Copyable {
  /// Called with an intact record that is not a sync mark, and its revision.
  typealias RecordBody = (UnsafeRawBufferPointer, UInt64) throws(LogError) -> Void

  /// The number of missing segments of a gap that are named.
  private static let namedPerGap: UInt64 = 16

  private let file: SegmentFile
  private var reader: SegmentReader
  private var segment: LogCheck.Segment
  private var loss: LossCount

  /// Reads all segments in a folder.
  /// - Parameter onRecord: Called with every intact record.
  static func run(
    _ folder: LogFolder, _ progress: (Int) -> Void, onRecord: RecordBody?
  ) throws(LogError) -> LogCheck.Report {
    let numbers = try LogError.wrapping(folder.path) { () throws(SystemError) in try folder.segmentNumbers() }
    var report = LogCheck.Report()
    let manifest = try readManifest(folder, &report)
    var next: UInt64 = 1
    var identity = manifest?.identity
    var (lastRevision, loss): (UInt64, LossCount) = (0, LossCount())
    for number in numbers where number >= next {
      for missing in next..<min(number, next + namedPerGap) { report.missing.append(folder.segmentPath(missing)) }
      if number > next { loss.add(nil) }
      let path = folder.segmentPath(number)
      let (file, start, byteCount) = try folder.openSegment(path)
      var segment = LogCheck.Segment(path: path, byteCount: byteCount)
      let header: SegmentHeader
      do throws(SegmentHeader.DecodingError) {
        header = try .decode(start)
        if header.number != number {
          segment.damage = .init(offset: 24, reason: "the file is named for segment \(number) but is \(header.number)")
        }
        if let identity, header.identity != identity {
          segment.damage = .init(offset: 16, reason: "the segment belongs to another store")
        }
        if identity == nil { identity = header.identity }
      } catch {
        segment.damage = .init(offset: 0, reason: error.isLaterVersion ? "it \(laterVersionProblem)" : error.reason)
        // The records of a segment without a header may be intact all the same.
        header = try SegmentHeader(
          replacingDamaged: start, of: file, path: path, byteCount: byteCount, identity: identity, number: number)
      }
      if byteCount > LogConfiguration.maxFileByteCount, segment.damage == nil {
        segment.damage = .init(
          offset: LogConfiguration.maxFileByteCount, reason: "the file is larger than any segment")
      }
      segment.lastRevision = header.lastRevision
      let found = SegmentFile(path: path, file: file, byteCount: byteCount, header: header)
      next = max(number, header.lastNumber) + 1
      let isLast = numbers.allSatisfy { $0 < next } && next > manifest?.number ?? 0
      var walk = SegmentWalk(found, segment, after: lastRevision, loss)
      unsafe try walk.walk(isLast: isLast, progress, onRecord)
      if isLast, let manifest { walk.checkEnd(manifest, lastRevision: report.segments.map(\.lastRevision).max() ?? 0) }
      (lastRevision, loss) = (walk.reader.lastRevision, walk.loss)
      if manifest == nil, report.manifestDamage == nil, header.salt != nil {
        report.manifestDamage = .init(offset: 0, reason: "the manifest is missing")
      }
      report.segments.append(walk.segment)
    }
    if let manifest, next <= manifest.number {
      for missing in next...min(manifest.number, next + namedPerGap - 1) {
        report.missing.append(folder.segmentPath(missing))
      }
      loss.add(nil)
    }
    let revision = max(report.revision, report.segments.map(\.lastRevision).max() ?? 0)
    loss.finish(at: revision, isIntact: report.isIntact)
    report.lostOperations = loss.count
    if report.isIntact { report.contradiction = try contradiction(in: folder, manifest) }
    return report
  }

  /// Returns why a server doesn't take the segments, each of which is intact, for a whole log; nil if it does.
  private static func contradiction(
    in folder: LogFolder, _ manifest: LogManifest?
  ) throws(LogError) -> (path: String, damage: LogCheck.Damage)? {
    do throws(LogError) { _ = try SegmentList(opening: folder, manifest: manifest) } catch {
      guard case .damaged(let path, let offset, let reason) = error else { throw error }
      return (path, LogCheck.Damage(offset: offset, reason: reason))
    }
    return nil
  }

  /// Reads the manifest for a report; nil if there is none or it is damaged.
  private static func readManifest(
    _ folder: LogFolder, _ report: inout LogCheck.Report
  ) throws(LogError) -> LogManifest? {
    report.manifestPath = folder.manifestPath
    do throws(LogError) {
      let manifest = try ManifestFile.open(in: folder, for: .reading)?.manifest
      report.revision = manifest?.revision ?? 0
      return manifest
    } catch {
      switch error {
      case .damaged(_, let offset, let reason): report.manifestDamage = .init(offset: offset, reason: reason)
      case .laterVersion: report.manifestDamage = .init(offset: 0, reason: "it \(laterVersionProblem)")
      case .failed, .noMemory: throw error
      }
      return nil
    }
  }

  /// Compares the end of the newest segment with the manifest.
  /// - Parameter lastRevision: The last revision of the segments before it.
  private mutating func checkEnd(_ manifest: LogManifest, lastRevision: UInt64) {
    let last = max(lastRevision, segment.lastRevision, file.header.lastRevision)
    guard segment.damage == nil,
      let shortage = manifest.shortage(of: file.header, end: segment.intactBytes, lastRevision: last)
    else { return }
    segment.damage = .init(offset: segment.intactBytes, reason: shortage)
    (segment.lostBytes, segment.tornBytes) = (segment.lostBytes + segment.tornBytes, 0)
    loss.add(nil)
  }

  /// - Parameter previous: The last revision of the segments before this one.
  private init(_ file: SegmentFile, _ segment: LogCheck.Segment, after previous: UInt64, _ loss: LossCount) {
    self.file = file
    self.segment = segment
    self.loss = loss
    reader = SegmentReader(file, verifiesValues: true, after: previous)
  }

  private mutating func walk(isLast: Bool, _ progress: (Int) -> Void, _ onRecord: RecordBody?) throws(LogError) {
    while true {
      unsafe try readChunks(progress, onRecord)
      let end = reader.end
      if segment.damage == nil { segment.intactBytes = end }
      segment.lastRevision = max(segment.lastRevision, reader.lastRevision)
      if case .sealed(let trailer) = reader.state {
        segment.isSealed = true
        segment.lastRevision = max(segment.lastRevision, trailer.lastRevision)
        loss.pass(from: trailer.lastRevision + 1, to: trailer.lastRevision)
        return
      }
      let tail = try reader.tornTail()
      if isLast, !file.header.isMadeByCompaction, !tail.wasSynced, segment.damage == nil {
        segment.tornBytes = tail.byteCount
        return
      }
      var reason = "the segment doesn't end as it should"
      if case .damaged(let description) = reader.state { reason = description }
      if segment.damage == nil { segment.damage = .init(offset: end, reason: reason) }
      let frameEnd = reader.frameEnd
      var canResume = false
      if tail.byteCount > 0 { canResume = try reader.resumeAfterDamage() }
      let byteCount = canResume ? reader.end - end : tail.byteCount
      segment.lostBytes += byteCount
      try addLoss(end..<end + byteCount, frameEnd: frameEnd)
      if !canResume { return }
    }
  }

  private mutating func addLoss(_ range: Range<Int>, frameEnd: Int) throws(LogError) {
    let bytes = try LogError.wrapping(segment.path) { () throws(SystemError) in
      try file.file.bytes(at: range.lowerBound, count: min(range.count, LossCount.examinedByteCount))
    }
    let operationCount = unsafe bytes.withBytes { bytes in
      unsafe DamagedRecords.operationCount(
        in: bytes, frameEnd: frameEnd - range.lowerBound, headerByteCount: LogFrame.byteCount)
    }
    loss.add(range.count, operationCount: operationCount)
  }

  private mutating func readChunks(_ progress: (Int) -> Void, _ onRecord: RecordBody?) throws(LogError) {
    while true {
      let chunk = try reader.next()
      if chunk.isEmpty { return }
      progress(chunk.byteCount(upTo: reader.end))
      var (marks, first): (Int, UInt64?) = (0, nil)
      let records = chunk.visit { operation, revision, _ in
        marks += operation.kind == SyncMark.kind ? 1 : 0
        first = first ?? revision
      }
      loss.pass(from: first ?? reader.lastRevision, to: reader.lastRevision)
      guard let onRecord = unsafe onRecord else {
        segment.records += records - marks
        continue
      }
      unsafe try chunk.visitRecords(of: file, upTo: reader.end) { (record) throws(LogError) in
        guard unsafe record[16] != SyncMark.kind else { return }
        unsafe try onRecord(record, record.integer(at: 8, as: UInt64.self))
        segment.records += 1
      }
    }
  }
}

extension SegmentHeader {
  /// Makes up a header for a segment whose own one is damaged. Its secret is known from the first frame or the trailer:
  /// no client writes at these places.
  fileprivate init(
    replacingDamaged start: [UInt8], of file: any File, path: String, byteCount: Int, identity: UInt64?, number: UInt64
  ) throws(LogError) {
    self.init(identity: identity ?? 1, number: number, lastNumber: number, firstRevision: 1)
    let end = byteCount - SegmentTrailer.byteCount
    let (frame, trailer) = try LogError.wrapping(path) { () throws(SystemError) in
      (
        try file.bytes(at: Self.byteCount, count: LogFrame.byteCount),
        try file.bytes(at: max(0, end), count: SegmentTrailer.byteCount)
      )
    }
    if let salt = unsafe frame.withBytes({ unsafe LogFrame.salt($0, at: Self.byteCount) }) {
      self.salt = salt
    } else if let trailer = unsafe trailer.withBytes({ unsafe SegmentTrailer.decode($0, at: end, secret: nil) }) {
      let isOld = trailer.secret == identity || Self.statedSalt(start) == nil
      if isOld { self.identity = trailer.secret } else { salt = trailer.secret }
    } else {
      salt = Self.statedSalt(start)
    }
  }
}

extension StoreReport.Files {
  init(_ log: LogCheck.Report) {
    self.init(
      files: log.segments.count, count: log.segments.reduce(0) { $0 + $1.records },
      byteCount: log.segments.reduce(0) { $0 + $1.byteCount },
      revision: log.segments.map(\.lastRevision).max() ?? 0)
    for segment in log.segments {
      if let found = segment.damage {
        add(.init(path: segment.path, offset: found.offset, reason: found.reason))
      }
      if segment.tornBytes > 0 {
        addRemark(
          "\(segment.path) has \(segment.tornBytes) bytes of an unfinished write from byte \(segment.intactBytes) on;"
            + " the next start removes them")
      }
    }
    for path in log.missing { add(.init(path: path, offset: nil, reason: "the segment is missing")) }
    if let (path, found) = log.contradiction {
      add(.init(path: path, offset: found.offset, reason: found.reason))
    }
    if let found = log.manifestDamage {
      add(.init(path: log.manifestPath, offset: found.offset, reason: found.reason))
    }
  }
}
