import Platform
import TestSupport
import Testing

@testable import Storage

/// Flips bits and forges fields in the files of stores, with right checksums. The server and a check agree on what is
/// whole, nothing takes more memory than the files justify, what is acknowledged is accepted again, and salvage invents
/// nothing and reports what it lacks.
@Suite("Stores with flipped bits and forged fields")
struct ForgeryTests {
  /// The files of a store that was not damaged yet, and what it once had.
  private struct Sample {
    let kind: EngineKind
    let files: [String: [UInt8]]
    /// Every value that was ever written, by key and revision.
    let history: [[UInt8]: [UInt64: [UInt8]]]
    let entries: [[UInt8]: [UInt8]]
  }

  /// A change of one file.
  private struct Change: CustomStringConvertible {
    let description: String
    let name: String
    let bytes: [UInt8]
  }

  private static let path = "/files"

  // MARK: The samples

  private static func log(isClosed: Bool) throws -> Sample {
    let disk = SimulatedDisk(seed: 5)
    let log = try TestLog(disk, folder: path)
    var history: [[UInt8]: [UInt64: [UInt8]]] = [:]
    for number in 1...40 {
      let (key, value) = ("key \(number % 25)", [UInt8](repeating: UInt8(number), count: 10 + 7 * number))
      if number % 11 == 0 {
        try log.commit([.delete(key: "key \(number - 1)")])
      } else {
        try log.commit([.put(key: key, value: value, kind: .single, expiry: 0)])
        history[key.bytes, default: [:]][log.revision] = value
      }
    }
    let entries = try log.entries().map { ($0.key.bytes, $0.value.value) }
    if isClosed { try log.engine.close() }
    disk.kill()
    return Sample(
      kind: .log, files: try files(of: disk), history: history, entries: Dictionary(uniqueKeysWithValues: entries))
  }

  private static func directory(isClosed: Bool) throws -> Sample {
    let disk = DirectoryRun.disk(seed: 5)
    var run = try DirectoryRun(disk)
    var history: [[UInt8]: [UInt64: [UInt8]]] = [:]
    for number in 1...40 {
      let key = "key \(number % 25)".bytes
      if number % 11 == 0 {
        run.delete("key \(number - 1)".bytes)
      } else {
        run.put(key, [UInt8](repeating: UInt8(number), count: 10 + 17 * number))
        history[key, default: [:]][run.model.revision] = run.model.entries[key]?.value
      }
      try run.write()
      if number == 12 { try run.performMaintenance() }
    }
    if isClosed { try run.close() }
    disk.kill()
    return Sample(
      kind: .directory, files: try files(of: disk), history: history, entries: run.model.entries.mapValues(\.value))
  }

  private static func files(of disk: SimulatedDisk) throws -> [String: [UInt8]] {
    let names = try disk.list(path)
    return Dictionary(uniqueKeysWithValues: names.map { ($0, disk.contents(path + "/" + $0) ?? []) })
  }

  private static func disk(_ sample: Sample, _ change: Change) -> SimulatedDisk {
    let disk = SimulatedDisk(seed: 1)
    disk.placeFolder(path)
    for (name, bytes) in sample.files { disk.place(path + "/" + name, name == change.name ? change.bytes : bytes) }
    return disk
  }

  // MARK: The changes

  /// A part of a file that has a checksum.
  private struct Structure {
    let name: String
    let range: Range<Int>
    /// The fields: their offsets and sizes.
    let fields: [(offset: Int, byteCount: Int)]
    /// Corrects the checksums of the file after a change of the structure.
    let correct: (inout [UInt8]) -> Void
  }

  private static func flips(
    of structures: [Structure], in sample: Sample, _ random: inout SeededGenerator
  ) -> [Change] {
    structures.flatMap { structure in
      let bytes = sample.files[structure.name] ?? []
      let bits = structure.range.flatMap { offset in (0..<8).map { (offset, UInt8($0)) } }
      let chosen = SeededGenerator.isThorough ? bits : Array(bits.shuffled(using: &random).prefix(1))
      return chosen.map { offset, bit in
        var flipped = bytes
        flipped[offset] ^= 1 << bit
        return Change(
          description: "\(structure.name): bit \(bit) of byte \(offset)", name: structure.name, bytes: flipped)
      }
    }
  }

  private static func forgeries(
    of structures: [Structure], in sample: Sample, _ random: inout SeededGenerator
  ) -> [Change] {
    let changes = structures.flatMap { structure in
      structure.fields.flatMap { field -> [Change] in
        let bytes = sample.files[structure.name] ?? []
        let old = (0..<field.byteCount).reduce(UInt64(0)) {
          $0 | UInt64(bytes[field.offset + $1]) << UInt64(8 * $1)
        }
        let mask = field.byteCount == 8 ? UInt64.max : 1 << UInt64(8 * field.byteCount) - 1
        let values: [UInt64] = [
          0, 1, old &+ 1, old &- 1, mask, mask >> 1, mask >> 1 &- 1, mask >> 1 &+ 1, 1 << 31, 1 << 31 - 1, 1 << 40,
          1 << 62,
        ]
        return Set(values.map { $0 & mask }).subtracting([old]).sorted().map { value in
          var forged = bytes
          for index in 0..<field.byteCount {
            forged[field.offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index))
          }
          structure.correct(&forged)
          return Change(
            description: "\(structure.name): \(value) for \(old) at byte \(field.offset)", name: structure.name,
            bytes: forged)
        }
      }
    }
    return SeededGenerator.isThorough ? changes : Array(changes.shuffled(using: &random).prefix(120))
  }

  private static func structures(of sample: Sample) -> [Structure] {
    sample.kind == .log ? logStructures(sample) : directoryStructures(sample)
  }

  private static func logStructures(_ sample: Sample) -> [Structure] {
    var structures: [Structure] = []
    for copy in [0, 512] {
      structures.append(
        Structure(
          name: "manifest", range: copy..<copy + 56, fields: [(copy + 8, 2)] + (2...6).map { (copy + 8 * $0, 8) }
        ) { bytes in
          let fields = Array(bytes[copy..<copy + 56])
          bytes.replace(at: copy + 12, littleEndian: fields.checksum(excluding: 12..<16))
        })
    }
    for (name, bytes) in sample.files where name.hasSuffix(".log") {
      structures.append(
        Structure(name: name, range: 0..<72, fields: [(8, 2)] + (2...8).map { (8 * $0, 8) }) { bytes in
          bytes.replace(at: 12, littleEndian: Array(bytes[..<72]).checksum(excluding: 12..<16))
        })
      var offset = 72
      while offset + 4 <= bytes.count, bytes.integer(at: offset, as: UInt32.self) != 0 {
        let (frame, record) = (offset, offset + LogFrame.byteCount)
        let end = record + Int(bytes.integer(at: frame, as: UInt32.self))
        structures.append(
          Structure(name: name, range: frame..<record, fields: [(frame, 4), (frame + 16, 8)]) { bytes in
            var place: [UInt8] = []
            place.append(littleEndian: UInt64(frame))
            let header = Array(bytes[frame..<record])
            let crc = unsafe header.withBytes { unsafe $0.checksum(excluding: 4..<8) }
            bytes.replace(at: frame + 4, littleEndian: unsafe place.withBytes { unsafe $0.checksum(after: crc) })
          })
        structures.append(recordStructure(name, record..<end) { _ in })
        offset = end
      }
      guard offset + 32 <= bytes.count else { continue }
      let trailer = offset
      structures.append(
        Structure(name: name, range: trailer..<trailer + 32, fields: [(trailer + 8, 8), (trailer + 16, 8)]) { bytes in
          bytes.replace(at: trailer + 4, littleEndian: Array(bytes[(trailer + 8)..<(trailer + 32)]).checksum())
        })
    }
    return structures
  }

  /// - Parameter correctFrame: Corrects the checksum of the frame.
  private static func recordStructure(
    _ name: String, _ record: Range<Int>, _ correctFrame: @escaping (inout [UInt8]) -> Void
  ) -> Structure {
    let start = record.lowerBound
    let fields = [(0, 4), (8, 8), (16, 1), (17, 1), (18, 2), (20, 4)].map { (offset: start + $0.0, byteCount: $0.1) }
    return Structure(name: name, range: record, fields: fields) { bytes in
      bytes.replace(at: start + 4, littleEndian: Array(bytes[record]).checksum(excluding: 4..<8))
      correctFrame(&bytes)
    }
  }

  private static func directoryStructures(_ sample: Sample) -> [Structure] {
    var structures: [Structure] = []
    for copy in [0, 512] {
      structures.append(
        Structure(
          name: Journal.listName, range: copy..<copy + 60, fields: [(copy + 7, 1)] + (1...6).map { (copy + 8 * $0, 8) }
        ) { bytes in
          bytes.replace(at: copy + 56, littleEndian: Array(bytes[copy..<copy + 56]).checksum())
        })
    }
    for (name, bytes) in sample.files where Journal.isName(name) {
      structures.append(
        Structure(name: name, range: 0..<28, fields: [(7, 1), (8, 8), (16, 8)]) { bytes in
          bytes.replace(at: 24, littleEndian: Array(bytes[..<24]).checksum())
          bytes.replaceSubrange(512..<540, with: bytes[..<28])
        })
      guard let header = JournalHeader(in: bytes, number: Journal.number(name) ?? 0) else { continue }
      var offset = Journal.start
      while let found = JournalFrame(in: bytes, at: offset, of: header) {
        let (frame, records) = (offset, found.records)
        func correctFrame(_ bytes: inout [UInt8]) {
          let checksum = Array(bytes[frame..<records.upperBound]).checksum(excluding: Journal.checksumRange)
          bytes.replace(at: frame + 4, littleEndian: checksum)
        }
        structures.append(
          Structure(
            name: name, range: frame..<records.lowerBound, fields: [(frame, 4), (frame + 16, 8), (frame + 24, 8)],
            correct: correctFrame))
        structures.append(recordStructure(name, records, correctFrame))
        offset = found.end
      }
    }
    return structures
  }

  // MARK: The three readers

  private enum Opening {
    case opened([[UInt8]: [UInt8]])
    case refused(any Error)
  }

  /// Opens a store as a server does, with one more commit if it has a revision left, and once more.
  private static func open(_ sample: Sample, _ disk: SimulatedDisk, _ change: Change) throws -> Opening {
    let first: [[UInt8]: [UInt8]]
    do { first = try openOnce(sample.kind, disk, addsCommit: true) } catch {
      return .refused(error)
    }
    disk.kill()
    do {
      let second = try openOnce(sample.kind, disk, addsCommit: false)
      #expect(second["added".bytes] == [1] || first["added".bytes] == nil, "\(change)")
    } catch {
      Issue.record("\(change): what was acknowledged is refused: \(error)")
    }
    return .opened(first)
  }

  private static func openOnce(
    _ kind: EngineKind, _ disk: SimulatedDisk, addsCommit: Bool
  ) throws -> [[UInt8]: [UInt8]] {
    let files = BoundedReads(disk)
    if kind == .log {
      let log = try TestLog(files, folder: path)
      let entries = try log.entries()
      if addsCommit, log.revision < CommitBuffer.revisions.upperBound {
        try log.commit([.put(key: "added", value: [1], kind: .single, expiry: 0)])
      }
      try log.engine.close()
      return Dictionary(uniqueKeysWithValues: entries.map { ($0.key.bytes, $0.value.value) })
    }
    var map = EntryMap()
    let (engine, _) = try DirectoryEngine.open(
      path, on: files, journalByteCount: DirectoryRun.smallJournalByteCount, into: &map, at: DirectoryRun.now)
    let entries = try DirectoryRun.entries(of: &map).mapValues(\.value)
    if addsCommit, map.revisions.last < CommitBuffer.revisions.upperBound {
      var commits = CommitBuffer()
      let key = "added".bytes
      unsafe key.withBytes { key in
        unsafe [1].withBytes { value in
          unsafe commits.put(key, value, kind: .single, expiry: 0, revision: map.revisions.last + 1)
        }
      }
      commits.seal()
      while engine.reservedByteCount < commits.count {
        try engine.reserveSpace()
        _ = try engine.performMaintenance(at: DirectoryRun.now.wall)
      }
      _ = unsafe try engine.write(commits.bytes, last: commits.lastRevision, separatedCount: 0, syncs: true)
    }
    while try engine.performMaintenance(at: DirectoryRun.now.wall) {}
    try engine.close()
    return entries
  }

  private static func check(_ kind: EngineKind, _ disk: SimulatedDisk) throws -> StoreReport {
    guard let engine = kind.files else { preconditionFailure() }
    var report = StoreReport("store", engine: kind, damage: nil)
    report.add(try engine.checkStore(in: path, on: BoundedReads(disk)) { _ in })
    return report
  }

  /// Salvages a store, and returns what the copy has and how many entries are reported as lost.
  private static func salvage(
    _ kind: EngineKind, _ disk: SimulatedDisk
  ) throws -> (entries: [[UInt8]: MapModel.Entry], lostEntries: Int) {
    guard let engine = kind.files else { preconditionFailure() }
    disk.placeFolder("/copy")
    let (_, summary) = try engine.salvageStore(in: path, to: "/copy", on: BoundedReads(disk)) { _ in }
    var map = EntryMap()
    if kind == .log {
      _ = try LogEngine.open(
        "/copy", files: disk, configuration: .tiny, now: 0, unixNow: DirectoryRun.now.wall, into: &map)
    } else {
      _ = try DirectoryEngine.open(
        "/copy", on: disk, journalByteCount: DirectoryRun.smallJournalByteCount, into: &map, at: DirectoryRun.now)
    }
    return (try DirectoryRun.entries(of: &map), summary.lostEntries)
  }

  // MARK: The tests

  private static func sample(_ kind: EngineKind, isClosed: Bool) throws -> Sample {
    kind == .log ? try log(isClosed: isClosed) : try directory(isClosed: isClosed)
  }

  private static let samples = [EngineKind.log, .directory].flatMap { kind in [true, false].map { (kind, $0) } }

  /// Expects the server and the check to agree.
  private static func expectAgreement(_ sample: Sample, _ change: Change) throws {
    let report = try check(sample.kind, disk(sample, change))
    switch try open(sample, disk(sample, change), change) {
    case .opened: #expect(report.isIntact, "\(change): opened, but \(report.damage)")
    case .refused(let error): #expect(!report.isIntact, "\(change): refused, but intact: \(error)")
    }
  }

  @Test(arguments: samples) func `a flipped bit is found by server and check, and salvage reports what it costs`(
    kind: EngineKind, isClosed: Bool
  ) throws {
    let sample = try Self.sample(kind, isClosed: isClosed)
    for seed in SeededGenerator.seeds(1).prefix(1) {
      var random = SeededGenerator(seed: seed)
      for change in Self.flips(of: Self.structures(of: sample), in: sample, &random) {
        try Self.expectAgreement(sample, change)
        let (entries, lostEntries) = try Self.salvage(kind, Self.disk(sample, change))
        for (key, entry) in entries {
          #expect(sample.history[key]?[entry.revision] == entry.value, "\(change): invented \(entry)")
        }
        let isIntact = try Self.check(kind, Self.disk(sample, change)).isIntact
        let differing = Set(entries.keys).union(sample.entries.keys).filter { entries[$0]?.value != sample.entries[$0] }
        // One frame has at most one record, so not much is lost.
        #expect(isIntact || lostEntries >= differing.count, "\(change): \(differing.count), not \(lostEntries)")
        #expect(differing.count <= 1 || isIntact, "\(change): lost \(differing.count)")
      }
    }
  }

  @Test(arguments: samples) func `a forged field with a right checksum is judged alike by server and check`(
    kind: EngineKind, isClosed: Bool
  ) throws {
    let sample = try Self.sample(kind, isClosed: isClosed)
    for seed in SeededGenerator.seeds(1).prefix(1) {
      var random = SeededGenerator(seed: seed)
      for change in Self.forgeries(of: Self.structures(of: sample), in: sample, &random) {
        try Self.expectAgreement(sample, change)
        _ = try Self.salvage(kind, Self.disk(sample, change))
      }
    }
  }

  @Test(arguments: [true, false]) func `a frame that claims bytes after its records is judged alike`(
    isClosed: Bool
  ) throws {
    let sample = try Self.log(isClosed: isClosed)
    for frame in Self.logStructures(sample) where frame.range.count == LogFrame.byteCount {
      let offset = frame.range.lowerBound
      for extra in 1...UInt32(LogFrame.byteCount) {
        var forged = sample.files[frame.name] ?? []
        forged.replace(at: offset, littleEndian: forged.integer(at: offset, as: UInt32.self) + extra)
        frame.correct(&forged)
        let change = Change(
          description: "\(frame.name): \(extra) more at byte \(offset)", name: frame.name, bytes: forged)
        try Self.expectAgreement(sample, change)
      }
    }
  }
}

/// A file system that expects nobody to read more than a file has, and one mebibyte.
private final class BoundedReads: FileSystem {
  private let files: SimulatedDisk

  init(_ files: SimulatedDisk) { self.files = files }

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    BoundedFile(try files.open(path, access))
  }

  func list(_ folder: String) throws(SystemError) -> [String] { try files.list(folder) }
  func kind(of path: String) throws(SystemError) -> FileKind? { try files.kind(of: path) }
  func createFolder(_ path: String) throws(SystemError) { try files.createFolder(path) }
  func rename(_ path: String, to other: String) throws(SystemError) { try files.rename(path, to: other) }
  func remove(_ path: String) throws(SystemError) { try files.remove(path) }
  func removeFolder(_ path: String) throws(SystemError) { try files.removeFolder(path) }
  func openFolder(_ path: String) throws(SystemError) -> any Folder { try files.openFolder(path) }

  private final class BoundedFile: File {
    private let file: any File

    init(_ file: any File) { self.file = file }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
      #expect(try buffer.count <= file.byteCount() + 1 << 20)
      return unsafe try file.read(at: offset, into: buffer)
    }

    func byteCount() throws(SystemError) -> Int { try file.byteCount() }
    func allocate(_ byteCount: Int) throws(SystemError) { try file.allocate(byteCount) }
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
      unsafe try file.write(bytes, at: offset)
    }
    func truncate(to byteCount: Int) throws(SystemError) { try file.truncate(to: byteCount) }
    func sync() throws(SystemError) { try file.sync() }
  }
}
