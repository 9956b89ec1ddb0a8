import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

/// Damage to the files of a log is detected or harmless.
struct LogDamageTests {
  /// How a log came to its end.
  enum End: CaseIterable {
    case closed
    /// The process was killed, and the system kept everything.
    case killed
    /// The machine was, and the disk has only what was synced.
    case powerCut
  }

  /// The first segment of a small log, and the entries at each revision.
  private struct Sample {
    var bytes: [UInt8]
    private(set) var manifest: [UInt8]
    var states: [[String: ModelEntry]]

    init(_ end: End) throws {
      let disk = SimulatedDisk(seed: 5)
      let log = try TestLog(disk)
      states = [[:]]
      let operations: [WriteOperation] = [
        .put(key: "a", value: [1, 2, 3], kind: .single, expiry: 0),
        .put(key: "b", value: [UInt8](repeating: 9, count: 40).asOnlyElement, kind: .list, expiry: 700),
        .delete(key: "a"),
        .put(key: "c", value: [], kind: .single, expiry: 0),
        .put(key: "b", value: [4], kind: .single, expiry: 0),
        .deleteAll,
        .put(key: "longer key", value: [5, 6], kind: .single, expiry: 0),
      ]
      for operation in operations {
        var entries = states.last!
        operation.apply(to: &entries, revision: UInt64(states.count))
        states.append(entries)
        try log.commit([operation])
      }
      if end == .closed { try log.engine.close() }
      bytes = disk.contents("/log/0000000001.log")!
      manifest = disk.contents("/log/manifest")!
      // The rest is zeroes; a few of them are enough.
      if end != .closed { bytes = Array(bytes.prefix(620)) }
      guard end == .powerCut else { return }
      // Nothing has synced the newer copy.
      let newer = manifest[16] > manifest[512 + 16] ? 0 : 512
      manifest.replaceSubrange(newer..<newer + 56, with: [UInt8](repeating: 0, count: 56))
    }
  }

  /// Opens a log that has one segment.
  private func open(_ bytes: [UInt8], manifest: [UInt8]? = nil) throws -> TestLog {
    let disk = SimulatedDisk(seed: 5)
    try disk.createFolder("/log")
    disk.place("/log/0000000001.log", bytes)
    if let manifest { disk.place("/log/manifest", manifest) }
    return try TestLog(disk)
  }

  /// Returns a sealed segment with a put of one key at each of the given revisions.
  private func segment(_ number: UInt64, revisions: [UInt64]) -> [UInt8] {
    let header = SegmentHeader(identity: 7, number: number, lastNumber: number, firstRevision: 1)
    var commits = CommitBuffer()
    for revision in revisions {
      WriteOperation.put(key: "key", value: [1], kind: .single, expiry: 0).append(to: &commits, revision: revision)
    }
    commits.seal()
    let bytes = unsafe header.bytes + Array(commits.bytes)
    return bytes + SegmentTrailer(offset: bytes.count, lastRevision: revisions.max() ?? 0, secret: 7).bytes
  }

  @Test(arguments: [1 << 63, .max]) func `the last possible revision in a log is detected`(revision: UInt64) throws {
    #expect(throws: LogError.self) { try open(segment(1, revisions: [1, revision])) }
    #expect(throws: LogError.self) {
      try open(
        SegmentHeader(
          identity: 7, number: 1, lastNumber: 1, firstRevision: revision
        ).bytes)
    }
  }

  @Test func `revisions that decrease from one segment to the next are detected`() throws {
    let disk = SimulatedDisk(seed: 5)
    try disk.createFolder("/log")
    disk.place("/log/0000000001.log", segment(1, revisions: [1, 5]))
    disk.place("/log/0000000002.log", segment(2, revisions: [3]))
    let damage = LogError.damaged(path: "/log/0000000002.log", offset: 64, reason: "revisions are out of order")
    #expect(throws: damage) { try TestLog(disk) }
  }

  @Test func `a flipped bit in a sealed log is detected or harmless`() throws {
    let sample = try Sample(.closed)
    var (found, harmless) = (0, 0)
    for bit in 0..<sample.bytes.count * 8 {
      var bytes = sample.bytes
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      do {
        let entries = try open(bytes, manifest: sample.manifest).entries()
        #expect(entries == sample.states.last, "bit \(bit)")
        harmless += 1
      } catch LogError.damaged(let path, let offset, _) {
        #expect(path == "/log/0000000001.log" && offset <= bit / 8, "bit \(bit)")
        found += 1
      } catch LogError.laterVersion {
        #expect((8..<10).contains(bit / 8), "bit \(bit)")
        found += 1
      }
    }
    // Only the trailer is dispensable.
    #expect(harmless <= SegmentTrailer.byteCount * 8)
    #expect(found >= (sample.bytes.count - SegmentTrailer.byteCount) * 8)
  }

  @Test func `a flipped bit in an unsealed log never changes a value`() throws {
    let sample = try Sample(.powerCut)
    for bit in 0..<sample.bytes.count * 8 {
      var bytes = sample.bytes
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      do {
        let log = try open(bytes, manifest: sample.manifest)
        #expect(try log.entries() == sample.states[Int(log.revision)], "bit \(bit)")
        #expect(log.revision == 7 || log.recovery.truncatedBytes > 0, "bit \(bit)")
      } catch LogError.damaged {} catch LogError.laterVersion {}
    }
  }

  @Test(arguments: End.allCases) func `a log truncated anywhere is an earlier state of the log, or damaged`(
    end: End
  ) throws {
    let sample = try Sample(end)
    // What the manifest knows of.
    let known =
      switch end {
      case .closed: sample.bytes.count - SegmentTrailer.byteCount
      case .killed: try #require(sample.bytes.lastIndex { $0 != 0 }) + 1
      case .powerCut: SegmentHeader.byteCount
      }
    for count in 0..<sample.bytes.count {
      do {
        let log = try open(Array(sample.bytes.prefix(count)), manifest: sample.manifest)
        #expect(try log.entries() == sample.states[Int(log.revision)], "\(count) bytes")
        #expect(count >= known)
      } catch LogError.damaged {
        #expect(count < known, "\(count) bytes")
      }
    }
  }

  @Test func `damage in the middle is refused with the file and the offset`() throws {
    let disk = SimulatedDisk(seed: 6)
    do {
      let log = try TestLog(disk)
      for number in 0..<40 {
        let value = [UInt8](repeating: UInt8(number), count: 200)
        try log.commit([.put(key: "key \(number)", value: value, kind: .single, expiry: 0)])
      }
    }
    // The third record of the second segment.
    let place = SegmentHeader.byteCount
    disk.flip("/log/0000000002.log", bit: (place + 2 * 250) * 8)
    disk.kill()
    #expect {
      _ = try TestLog(disk)
    } throws: { error in
      guard case .damaged("/log/0000000002.log", let offset, _) = error as? LogError else { return false }
      return offset > place && offset <= place + 2 * 250
    }
  }

  @Test func `damage to the synced part of the last segment is refused, too`() throws {
    let disk = SimulatedDisk(seed: 6)
    do {
      let log = try TestLog(disk, configuration: LogConfiguration())
      for number in 0..<10 {
        try log.commit([.put(key: "key \(number)", value: [UInt8](repeating: 1, count: 50), kind: .single, expiry: 0)])
      }
    }
    disk.flip("/log/0000000001.log", bit: 100 * 8)
    disk.kill()
    #expect(throws: LogError.self) { _ = try TestLog(disk, configuration: LogConfiguration()) }
  }

  @Test func `a log with a missing segment is refused`() throws {
    let disk = SimulatedDisk(seed: 7)
    do {
      let log = try TestLog(disk)
      for number in 0..<60 {
        let value = [UInt8](repeating: UInt8(number), count: 200)
        try log.commit([.put(key: "key \(number)", value: value, kind: .single, expiry: 0)])
      }
    }
    try disk.remove("/log/0000000002.log")
    disk.kill()
    #expect(throws: LogError.damaged(path: "/log/0000000002.log", offset: 0, reason: "the segment is missing")) {
      _ = try TestLog(disk)
    }
  }

  @Test func `a full disk refuses writes, can be compacted, and accepts writes again`() throws {
    let disk = SimulatedDisk(seed: 8)
    let log = try TestLog(disk)
    disk.byteLimit = 60_000
    var refused = false
    var number = 0
    while !refused {
      number += 1
      if log.engine.reservedByteCount < 400 {
        do { try log.engine.reserveSpace() } catch {
          #expect(error == .noSpace)
          refused = true
          break
        }
      }
      let value = [UInt8](repeating: UInt8(number & 255), count: 200)
      try log.commit([.put(key: "key \(number % 10)", value: value, kind: .single, expiry: 0)])
    }
    for _ in 0..<1_000 where try !log.performMaintenance() { break }
    #expect(log.engine.writer.byteCount < 30_000, "\(log.engine.figures)")
    try log.engine.reserveSpace()
    try log.commit([.put(key: "after", value: [1], kind: .single, expiry: 0)])
    let entries = try log.entries()
    disk.crash()
    #expect(try TestLog(disk).entries() == entries)
  }

  @Test func `without file descriptors, writes are refused once the reserved space is used up, and resume later`()
    throws
  {
    let disk = SimulatedDisk(seed: 12)
    let log = try TestLog(disk)
    try log.engine.reserveSpace()
    disk.injectedFailure = .init(.open, number: 1, errno: EMFILE, isPersistent: true)
    let number = log.engine.writer.nextNumber
    while log.engine.reservedByteCount >= 400 {
      try log.commit([.put(key: "key", value: [UInt8](repeating: 1, count: 200), kind: .single, expiry: 0)])
    }
    #expect(log.engine.writer.nextNumber > number, "the prepared segment has its name")
    #expect(throws: EngineError.noSpace) { try log.engine.reserveSpace() }
    for _ in 0..<100 { _ = try log.performMaintenance() }
    disk.injectedFailure = nil
    try log.commit([.put(key: "after", value: [2], kind: .single, expiry: 0)])
    let entries = try log.entries()
    disk.crash()
    #expect(try TestLog(disk).entries() == entries)
  }

  @Test func `a compaction without file descriptors waits, and leaves the reserve alone`() throws {
    let disk = SimulatedDisk(seed: 13)
    let log = try TestLog(disk)
    for number in 0..<200 {
      let value = [UInt8](repeating: UInt8(number & 255), count: 200)
      try log.commit([.put(key: "key \(number % 10)", value: value, kind: .single, expiry: 0)])
    }
    try log.engine.reserveSpace()
    let reserve = try #require(log.engine.writer.reserveByteCount)
    #expect(reserve > 0)
    disk.injectedFailure = .init(.open, number: 1, errno: ENFILE, isPersistent: true)
    for _ in 0..<1_000 where try !log.performMaintenance() { break }
    #expect(log.engine.writer.reserveByteCount == reserve)
    disk.injectedFailure = nil
    while !log.engine.isCompacting {
      try log.commit([.put(key: "key", value: [UInt8](repeating: 1, count: 200), kind: .single, expiry: 0)])
      _ = try log.performMaintenance()
    }
    // From here on, it has everything it needs.
    disk.injectedFailure = .init(.open, number: 1, errno: ENFILE, isPersistent: true)
    let before = log.engine.writer.byteCount
    for _ in 0..<1_000 where try !log.performMaintenance() { break }
    #expect(log.engine.writer.byteCount < before)
    let entries = try log.entries()
    disk.crash()
    #expect(try TestLog(disk).entries() == entries)
  }
}
