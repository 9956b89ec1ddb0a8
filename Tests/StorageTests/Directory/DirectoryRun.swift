import Platform
import TestSupport
import Testing

@testable import Storage

/// A directory store and its expected contents. Commits go to the engine as a commit writer would pass them.
struct DirectoryRun: ~Copyable {
  static let now = ClockReading(wall: 1_800_000_000_000, monotonic: 5_000)

  let path: String
  let fileSystem: any FileSystem
  private let journalByteCount: Int
  private let now: ClockReading
  /// The local folder, kept for as long as the run lasts.
  private let folder: TemporaryFolder?
  var model: MapModel
  private(set) var engine: DirectoryEngine
  private(set) var report: DirectoryReport
  private var commits = CommitBuffer()

  /// Opens a store in a local folder.
  init(_ folder: TemporaryFolder, journalByteCount: Int = Journal.initialByteCount) throws {
    (self.folder, path, fileSystem, model) = (folder, folder.path, LocalFileSystem(), MapModel())
    (self.journalByteCount, now) = (journalByteCount, Self.now)
    var map = EntryMap()
    (engine, report) = try DirectoryEngine.open(
      path, on: fileSystem, journalByteCount: journalByteCount, into: &map, at: now)
  }

  /// Opens a store on a disk whose folder is empty or contains the model's entries.
  init(_ disk: SimulatedDisk, model: MapModel = MapModel(), at now: ClockReading = DirectoryRun.now) throws {
    (folder, path, fileSystem, journalByteCount) = (nil, Self.simulatedPath, disk, Self.smallJournalByteCount)
    (self.model, self.now) = (model, now)
    var map = EntryMap()
    (engine, report) = try Self.open(disk, into: &map, at: now)
  }

  static let simulatedPath = "/files"
  static let smallJournalByteCount = 8_192

  static func disk(seed: UInt64) -> SimulatedDisk {
    let disk = SimulatedDisk(seed: seed)
    disk.placeFolder(simulatedPath)
    return disk
  }

  static func open(
    _ disk: SimulatedDisk, into map: inout EntryMap, at now: ClockReading = DirectoryRun.now
  ) throws(DirectoryError) -> (engine: DirectoryEngine, report: DirectoryReport) {
    try DirectoryEngine.open(simulatedPath, on: disk, journalByteCount: smallJournalByteCount, into: &map, at: now)
  }

  /// Adds a put to the outstanding commits.
  /// - Parameters:
  ///   - value: The value, or the only element of a list.
  ///   - expiry: The expiry on the wall clock.
  ///   - sameRevision: Whether the put belongs to the same write as the previous operation.
  mutating func put(
    _ key: [UInt8], _ value: [UInt8], kind: EntryKind = .single, expiry: UInt64 = 0, sameRevision: Bool = false
  ) {
    if !sameRevision { model.revision += 1 }
    let value = kind == .list ? value.asOnlyElement : value
    model.entries[key] = .init(kind: kind, revision: model.revision, expiry: expiry, value: value)
    let revision = model.revision
    unsafe key.withBytes { key in
      unsafe value.withBytes { value in
        unsafe commits.put(key, value, kind: kind == .list ? .list : .single, expiry: expiry, revision: revision)
      }
    }
  }

  mutating func delete(_ key: [UInt8], sameRevision: Bool = false) {
    if !sameRevision { model.revision += 1 }
    model.entries[key] = nil
    let revision = model.revision
    unsafe key.withBytes { key in unsafe commits.delete(key, revision: revision) }
  }

  mutating func deleteAll() {
    model.revision += 1
    model.entries = [:]
    commits.deleteAll(revision: model.revision)
  }

  /// Passes the outstanding commits to the engine.
  mutating func write(syncs: Bool = true) throws(EngineError) {
    commits.seal()
    defer { commits.removeAll() }
    try reserve(commits.count)
    _ = unsafe try engine.write(
      commits.bytes, last: commits.lastRevision, separatedCount: commits.separatedCount, syncs: syncs)
  }

  /// Reserves space, as a commit writer does for a write that needs it.
  func reserve(_ byteCount: Int) throws(EngineError) {
    while engine.reservedByteCount < byteCount {
      try engine.reserveSpace()
      if engine.isReservingSpace { _ = try step() }
    }
  }

  /// The names of the entries' files, sorted.
  func entryNames() throws -> [String] { try fileSystem.list(path).filter { $0.first != "." }.sorted() }

  /// Does a step of maintenance.
  /// - Returns: Whether there is more to do.
  func step() throws(EngineError) -> Bool { try engine.performMaintenance(at: now.wall) }

  func performMaintenance() throws { while try step() {} }

  /// Closes the store in order.
  func close() throws(EngineError) { try engine.close() }

  /// Reopens the store, as another process would, and compares it with the model.
  mutating func reopen() throws {
    var map = EntryMap()
    (engine, report) = try DirectoryEngine.open(
      path, on: fileSystem, journalByteCount: journalByteCount, into: &map, at: now)
    let found = try Self.entries(of: &map, at: now)
    #expect(found == model.entries)
    #expect(map.revisions.last == model.revision)
    map.validate()
  }

  /// Returns the entries of a map, with expiries on the wall clock.
  static func entries(
    of map: inout EntryMap, at now: ClockReading = DirectoryRun.now
  ) throws -> [[UInt8]: MapModel.Entry] {
    var entries: [[UInt8]: MapModel.Entry] = [:]
    for copy in try map.copies(map.ranks(now: now.monotonic), now: now.monotonic) {
      entries[copy.key] = copy.entry
      if copy.entry.expiry != 0 { entries[copy.key]!.expiry += now.wall - now.monotonic }
    }
    return entries
  }

  /// Keys that need escaping in a file name, or whose names are nearly the same.
  static let hostileKeys: [[UInt8]] =
    [
      ".", "..", "/", "../../etc/passwd", "a/b", "a%2fb", "\0", "a\0", "\n", " ", "-rf", ".hidden", ".journal", ".new",
      "User", "user", "^user", "USER", "é", "e\u{301}", "É", "ﬁ", "fi", "😀", "a@1", "a@1-00000000", "a@key", "%", "%~",
      "~", "*", "a\\b", "con", "nul.", "ſ", "İ", "K",
    ].map(\.bytes)
    + [
      [UInt8](repeating: 0x61, count: 180), [UInt8](repeating: 0x61, count: 181),
      [UInt8](repeating: 0x61, count: 4_096),
      [UInt8](repeating: 0x61, count: 4_095) + [0x62], [UInt8](repeating: 0x2F, count: 4_096),
      [UInt8](repeating: 0x41, count: 4_096), Array(String(repeating: "é", count: 2_048).utf8),
    ]
}
