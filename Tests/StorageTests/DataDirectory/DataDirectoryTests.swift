import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

/// The tests run one at a time, because a child process briefly holds its parent's locks while it starts.
@Suite(.serialized) struct DataDirectoryTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file("data") }

  init() throws { folder = try TemporaryFolder() }

  @Test func `stores are recorded with their descriptions`() throws {
    let sessions = StoreDescription(
      name: try StoreName("sessions"), engine: .log, durability: .interval(.milliseconds(250)))
    let photos = StoreDescription(name: try StoreName("Photos.2026"), engine: .directory)
    do {
      let directory = try DataDirectory.open(path)
      #expect(try directory.stores() == [])
      try directory.create(sessions)
      try directory.create(photos)
    }
    let directory = try DataDirectory.open(path)
    #expect(try directory.stores() == [photos, sessions])
    #expect(try directory.description(of: photos.name) == photos)
    #expect(sessions.identity != photos.identity)
    let files = try LocalFileSystem().kind(of: directory.filesFolder(of: photos.name))
    #expect(files == .folder)
  }

  @Test func `a store's entries are still there after it is reopened`() throws {
    let name = try StoreName("photos")
    for round: UInt8 in 0..<3 {
      let directory = try DataDirectory.open(path)
      if round == 0 { try directory.create(StoreDescription(name: name, engine: .directory)) }
      let store = Store(name: name, engine: .directory)
      let (engine, report) = try store.access { (map) throws(DirectoryError) in
        try DirectoryEngine.open(directory.filesFolder(of: name), on: LocalFileSystem(), into: &map)
      }
      #expect(report.isClean && report.entries == Int(round) && report.revision == UInt64(round))
      #expect(store.access { map in map.revisions.last } == UInt64(round))
      var commits = CommitBuffer()
      unsafe [round].withBytes { key in
        unsafe commits.put(key, key, kind: .single, expiry: 0, revision: UInt64(round) + 1)
      }
      commits.seal()
      _ = unsafe try engine.write(commits.bytes, last: commits.lastRevision, separatedCount: 0, syncs: true)
      if round == 1 { while try engine.performMaintenance(store) {} }
    }
  }

  @Test func `a store that does not fit on a full disk is not created, and can be created later`() throws {
    let disk = ObservedFiles()
    let data = try DataDirectory.open(path, on: disk)
    let catalog = StoreCatalog(data: data)
    let (name, specification) = (try StoreName("photos"), try StoreSpecification("directory"))
    disk.setFull(true)
    #expect(throws: StorageError.self) { try catalog.create(name, specification) }
    #expect(try data.stores().isEmpty)
    disk.setFull(false)
    try catalog.create(name, specification)
    #expect(try data.stores().map(\.name) == [name])
    try catalog.drop(name)
    #expect(try data.stores().isEmpty)
  }

  @Test(arguments: [EngineKind.log, .directory])
  func `reopening a store takes no more disk space`(engine: EngineKind) throws {
    let name = try StoreName("idle")
    let description = StoreDescription(name: name, engine: engine)
    var sizes: [UInt64?] = []
    for round in 0..<4 {
      let directory = try DataDirectory.open(path)
      if round == 0 { try directory.create(description) }
      let store = try Store.open(description, in: directory).store
      store.close()
      let figures = store.commitWriter?.figures ?? []
      sizes.append(
        figures.first { $0.name == "log_room_bytes" || $0.name == "directory_journal_capacity_bytes" }?.value)
    }
    #expect(sizes[0] != nil && Set(sizes).count == 1, "\(sizes)")
  }

  @Test func `a second owner of a data directory is refused with the process id`() throws {
    let first = try DataDirectory.open(path)
    let refusal = DataDirectoryError.inUse(path: path, owner: getpid())
    #expect(throws: refusal) { try DataDirectory.open(path) }
    #expect(refusal.description.contains("in use by process \(getpid())"))
    _ = first.path
  }

  @Test func `a second owner of a data directory is refused even if the lock file was removed`() throws {
    let first = try DataDirectory.open(path)
    try LocalFileSystem().remove(path + "/lock")
    #expect(throws: DataDirectoryError.inUse(path: path, owner: nil)) { try DataDirectory.open(path) }
    #expect(throws: DataDirectoryError.inUse(path: path, owner: nil)) { try DataDirectory.openUnchanged(path) }
    #expect(try LocalFileSystem().kind(of: path + "/lock") == nil)
    first.close()
    _ = try DataDirectory.open(path)
  }

  @Test(arguments: ["files/manifest", "files/0000000001.log", "store"])
  func `if a later version has written one store, nothing is changed`(file: String) throws {
    let names = try ["a", "b"].map(StoreName.init)
    do {
      let data = try DataDirectory.open(path)
      for name in names {
        let description = StoreDescription(name: name, engine: .log)
        try data.create(description)
        let store = try Store.open(description, in: data).store
        try store.putWhenThereIsSpace("key".bytes, [1])
        store.close()
      }
      data.close()
    }
    var bytes = try folder.contents("data/stores/b/\(file)")
    if file == "store" {
      bytes[13] = UInt8(ascii: "2")
    } else {
      for copy in [0, 512] where copy + 8 < bytes.count { bytes[copy + 8] = 9 }
    }
    try folder.put("data/stores/b/\(file)", bytes)
    try LocalFileSystem().createFolder(path + "/stores/.dropped-1")
    let before = try LocalFileSystem().list(path + "/stores").sorted()
    #expect {
      _ = try DataDirectory.open(path)
    } throws: { error in
      "\(error)".contains("data/stores/b/\(file)") && "\(error)".contains("later version")
    }
    #expect(try LocalFileSystem().list(path + "/stores").sorted() == before)
  }

  @Test(arguments: [EngineKind.log, .directory])
  func `a store that has used up its revisions refuses writes, and can be opened again`(engine: EngineKind) throws {
    let name = try StoreName("old")
    let description = StoreDescription(name: name, engine: engine)
    let last = CommitBuffer.revisions.upperBound
    for round in 0..<3 {
      let data = try DataDirectory.open(path)
      if round == 0 { try data.create(description) }
      let store = try Store.open(description, in: data).store
      if round == 0 {
        try store.access { map throws(StorageError) in
          let key = "last".bytes
          unsafe try map.put(key.span.bytes, key.span.bytes, revision: last - 1)
          unsafe try map.put(key.span.bytes, key.span.bytes, revision: last)
        }
        store.commitWriter?.wake()
      }
      store.access { map in
        let key = "last".bytes
        #expect(map.revisions.last == last)
        #expect(throws: StorageError.revisionsUsedUp) {
          unsafe try map.put(key.span.bytes, key.span.bytes, revision: map.revisions.last + 1)
        }
        #expect(throws: StorageError.revisionsUsedUp) {
          unsafe try map.delete(key.span.bytes, revision: map.revisions.last + 1, now: 0)
        }
        #expect(throws: StorageError.revisionsUsedUp) { try map.deleteAll(now: 0) }
        #expect(throws: StorageError.revisionsUsedUp) { try map.reserve(records: 1, bytes: 10) }
        #expect(map.order.count == 1)
      }
      store.close()
      data.close()
    }
    let check = try DataDirectoryCheck(path)
    #expect(check.check(check.stores[0]) { _ in }.isIntact)
  }

  @Test func `another process is refused with the process id until the owner ends`() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let owner = Process()
    owner.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
    owner.arguments = ["--no-fork", path + "/lock", "sleep", "60"]
    try owner.run()
    defer { if owner.isRunning { kill(owner.processIdentifier, SIGKILL) } }
    // The process has the lock once `flock` has become `sleep`. The test writes its ID on its behalf.
    let command = "/proc/\(owner.processIdentifier)/comm"
    while (try? String(contentsOfFile: command, encoding: .utf8)) != "sleep\n" { usleep(1_000) }
    #expect(throws: DataDirectoryError.inUse(path: path, owner: nil)) { try DataDirectory.open(path) }
    try "\(owner.processIdentifier)\n".write(toFile: path + "/lock", atomically: false, encoding: .utf8)
    #expect(throws: DataDirectoryError.inUse(path: path, owner: owner.processIdentifier)) {
      try DataDirectory.open(path)
    }
    kill(owner.processIdentifier, SIGKILL)
    owner.waitUntilExit()
    _ = try DataDirectory.open(path)
    #expect(try String(contentsOfFile: path + "/lock", encoding: .utf8) == "\(getpid())\n")
  }

  @Test func `a store can be created only once`() throws {
    let directory = try DataDirectory.open(path)
    let name = try StoreName("a")
    try directory.create(StoreDescription(name: name, engine: .log))
    #expect(throws: DataDirectoryError.storeExists(name)) {
      try directory.create(StoreDescription(name: name, engine: .directory))
    }
  }

  @Test func `a dropped store's files are removed, and its name is free`() throws {
    let directory = try DataDirectory.open(path)
    let name = try StoreName("a")
    try directory.create(StoreDescription(name: name, engine: .directory))
    try folder.put("outside", [1])
    try folder.link("data/stores/a/files/link", to: folder.file("outside"))
    try folder.put("data/stores/a/files/x@1-00000000", [1])
    try directory.drop(name)
    directory.waitForRemovals()
    #expect(try LocalFileSystem().list(path + "/stores") == [])
    #expect(try folder.contents("outside") == [1])
    #expect(throws: DataDirectoryError.unknownStore(name)) { try directory.drop(name) }
    #expect(throws: DataDirectoryError.unknownStore(name)) { try directory.description(of: name) }
    try directory.create(StoreDescription(name: name, engine: .log))
    #expect(try directory.stores().map(\.engine) == [.log])
  }

  @Test func `dropping a store doesn't wait for the removal of its files`() throws {
    let disk = StallingFiles()
    let directory = try DataDirectory.open(path, on: disk)
    let name = try StoreName("a")
    disk.stall(path + "/stores/.dropped-")
    for round in 0..<2 {
      try directory.create(StoreDescription(name: name, engine: .directory))
      try folder.put("data/stores/a/files/x@1-00000000", [1])
      try directory.drop(name)
      #expect(try directory.stores().isEmpty && LocalFileSystem().list(path + "/stores").count == round + 1)
    }
    disk.resume()
    directory.waitForRemovals()
    #expect(try LocalFileSystem().list(path + "/stores") == [])
  }

  @Test func `the removal of a dropped store is completed after a restart, in the background`() throws {
    _ = try DataDirectory.open(path)
    for name in ["files", "files/deeper"] {
      try FileManager.default.createDirectory(
        atPath: path + "/stores/.dropped-a/" + name, withIntermediateDirectories: true)
    }
    for number in 0..<200 { try folder.put("data/stores/.dropped-a/files/x@\(number)", [1]) }
    let disk = StallingFiles()
    disk.stall(path + "/stores/.dropped-")
    let directory = try DataDirectory.open(path, on: disk)
    #expect(try directory.stores().isEmpty)
    disk.resume()
    directory.waitForRemovals()
    #expect(try LocalFileSystem().list(path + "/stores") == [])
  }

  @Test func `a store whose creation or removal is interrupted exists completely or not at all`() throws {
    let name = try StoreName("a")
    var made = 0
    for (call, losesPower) in (1...80).flatMap({ [($0, false), ($0, true)] }) {
      // The lock is a local file, whatever the disk.
      let place = folder.file("cut-\(call)-\(losesPower)")
      try LocalFileSystem().createFolder(place)
      let disk = SimulatedDisk(seed: UInt64(call))
      disk.placeFolder(place)
      disk.injectedFailure = .init(number: call, errno: EIO, isPersistent: true)
      var (isMade, isDropped) = (false, false)
      do {
        let directory = try DataDirectory.open(place, on: disk)
        try directory.create(StoreDescription(name: name, engine: .directory))
        isMade = true
        try directory.drop(name)
        isDropped = true
      } catch {}
      #expect(isDropped || call < 80, "there are more calls now than the test interrupts")
      if losesPower { disk.crash() } else { disk.kill() }
      let comment: Comment = "interrupted at call \(call), \(losesPower ? "by a power cut" : "by a kill")"
      let directory = try DataDirectory.open(place, on: disk)
      let stores = try directory.stores()
      directory.waitForRemovals()
      #expect(stores.map(\.name) == [name] || stores.isEmpty, comment)
      #expect(!isDropped || stores.isEmpty, comment)
      #expect(try disk.list(place + "/stores").count == stores.count, comment)
      if let store = stores.first { #expect(try disk.kind(of: directory.filesFolder(of: store.name)) == .folder) }
      made += isMade && !stores.isEmpty ? 1 : 0
    }
    #expect(made > 0)
  }

  // MARK: A kill, and then a power cut

  private static let engines: [EngineKind] = [.log, .directory]

  /// Returns a disk, and a path on it that doesn't exist yet.
  private func disk(_ name: String, seed: Int) throws -> (disk: SimulatedDisk, place: String) {
    // The lock is a local file, whatever the disk.
    let place = folder.file(name)
    try LocalFileSystem().createFolder(place)
    let disk = SimulatedDisk(seed: UInt64(seed))
    disk.placeFolder(folder.path)
    return (disk, place)
  }

  /// Opens a store, calls `body`, and cuts the power when everything is durable.
  private func use(_ directory: DataDirectory, _ disk: SimulatedDisk, _ body: (Store) throws -> Void) throws {
    let store = try Store.open(#require(try directory.stores().first), in: directory).store
    try body(store)
    let (revision, commitWriter) = (store.access { $0.revisions.last }, try #require(store.commitWriter))
    while !commitWriter.isDurable(revision), commitWriter.failure == nil { usleep(100) }
    #expect(commitWriter.failure == nil)
    disk.injectedFailure = .init(number: 1, errno: EIO, isPersistent: true)
    store.close()
    directory.close()
    disk.crash(reordersNames: true)
  }

  @Test(arguments: engines) func `a store whose creation was interrupted loses no write`(engine: EngineKind) throws {
    let description = StoreDescription(name: try StoreName("a"), engine: engine)
    var (call, isMade) = (0, false)
    while !isMade {
      call += 1
      let (disk, place) = try disk("created-\(engine)-\(call)", seed: call)
      disk.injectedFailure = .init(number: call, errno: EIO, isPersistent: true)
      do {
        let directory = try DataDirectory.open(place, on: disk)
        try directory.create(description)
        try Store.open(description, in: directory).store.close()
        isMade = true
      } catch {}
      disk.kill()
      let directory = try DataDirectory.open(place, on: disk)
      if try directory.stores().isEmpty { try directory.create(description) }
      try use(directory, disk) { try $0.putWhenThereIsSpace([1], [2]) }
      let reopened = try DataDirectory.open(place, on: disk)
      #expect(try reopened.stores().map(\.name) == [description.name], "interrupted at call \(call)")
      try use(reopened, disk) { store in
        let value = store.access { $0.copy(of: [1])?.entry.value }
        #expect(value == [2], "interrupted at call \(call)")
      }
    }
  }

  @Test(arguments: engines) func `a store whose removal was interrupted is intact or gone`(
    engine: EngineKind
  ) throws {
    let description = StoreDescription(name: try StoreName("a"), engine: engine)
    for call in 1...40 {
      let (disk, place) = try disk("dropped-\(engine)-\(call)", seed: call)
      try DataDirectory.open(place, on: disk).create(description)
      try use(DataDirectory.open(place, on: disk), disk) { try $0.putWhenThereIsSpace([1], [2]) }
      do {
        let directory = try DataDirectory.open(place, on: disk)
        disk.injectedFailure = .init(number: min(call, 6), errno: EIO, isPersistent: true)
        try? directory.drop(description.name)
      }
      disk.kill()
      // The next server removes the rest of the files, unless it is interrupted, too.
      disk.injectedFailure = .init(number: call, errno: EIO, isPersistent: true)
      var wasThere: Bool?
      do {
        let directory = try DataDirectory.open(place, on: disk)
        wasThere = try !directory.stores().isEmpty
        directory.waitForRemovals()
      } catch {}
      disk.crash(reordersNames: true)
      let reopened = try DataDirectory.open(place, on: disk)
      let isThere = try !reopened.stores().isEmpty
      if let wasThere { #expect(isThere == wasThere, "interrupted at call \(call)") }
      guard isThere else { continue }
      try use(reopened, disk) { store in
        let value = store.access { $0.copy(of: [1])?.entry.value }
        #expect(value == [2], "interrupted at call \(call)")
      }
    }
  }

  @Test(arguments: ["", "/"]) func `a new data directory survives a power cut`(ending: String) throws {
    let description = StoreDescription(name: try StoreName("a"), engine: .log)
    for seed in 1...10 {
      let (disk, place) = try disk("new-\(ending.count)-\(seed)", seed: seed)
      try DataDirectory.open(place + ending, on: disk).create(description)
      disk.crash()
      #expect(try DataDirectory.open(place, on: disk).stores() == [description])
    }
  }

  @Test func `a new directory may be in a folder that a link leads to`() throws {
    try folder.link("link", to: folder.path)
    try LocalFileSystem().createFolder(path)
    let description = StoreDescription(name: try StoreName("a"), engine: .log)
    try DataDirectory.open(folder.file("link/data")).create(description)
    #expect(try DataDirectory.open(path).stores() == [description])
  }

  @Test func `a new directory may be in a folder that can't be synced`() throws {
    let (disk, place) = try disk("unsyncable", seed: 1)
    // The parent is the first folder that is synced.
    disk.injectedFailure = .init(.syncFolder, number: 1, errno: EIO)
    #expect(throws: DataDirectoryError.self) { try DataDirectory.open(place, on: disk) }
    disk.injectedFailure = .init(.syncFolder, number: 1, errno: EINVAL)
    #expect(try DataDirectory.open(place, on: disk).stores().isEmpty)
  }

  @Test func `a store that can't be put on disk isn't created`() throws {
    let (disk, place) = try disk("unsynced", seed: 1)
    let directory = try DataDirectory.open(place, on: disk)
    // The second folder that is synced is the one that has all stores.
    disk.injectedFailure = .init(.syncFolder, number: 2, errno: EIO)
    let description = StoreDescription(name: try StoreName("a"), engine: .log)
    #expect(throws: DataDirectoryError.self) { try directory.create(description) }
    #expect(try directory.stores().isEmpty)
    try directory.create(description)
    #expect(try directory.stores() == [description])
  }

  @Test func `a store without the folder of its files is refused`() throws {
    let directory = try DataDirectory.open(path)
    let description = StoreDescription(name: try StoreName("a"), engine: .log)
    try directory.create(description)
    try LocalFileSystem().removeFolder(directory.filesFolder(of: description.name))
    #expect(throws: DataDirectoryError.self) { try Store.open(description, in: directory) }
  }

  @Test(arguments: [
    ("", 1), ("larder store 2\n", 1), ("larder store 1\nname = a\nengine = tape\ndurability = always\n", 3),
    ("larder store 1\nname a\n", 2), ("larder store 1\nname = a\nname = a\n", 3), ("larder store 1\ncolour = red\n", 2),
    ("larder store 1\nname = a\nengine = log\ndurability = sometimes\n", 4), ("larder store 1\nname = a\n", 0),
    ("larder store 1\nname = ../x\n", 2),
    ("larder store 1\nname = b\nengine = log\ndurability = none\nidentity = 00\n", 5),
    ("larder store 1\nname = b\nengine = log\ndurability = none\nidentity = 0123456789abcdef0123456789abcdef\n", 0),
  ])
  func `a damaged description is refused with its file and line`(text: String, line: Int) throws {
    let directory = try DataDirectory.open(path)
    try directory.create(StoreDescription(name: try StoreName("a"), engine: .log))
    try folder.put("data/stores/a/store", text.bytes)
    let error = #expect(throws: DataDirectoryError.self) { try directory.stores() }
    guard case .damagedDescription(folder.file("data/stores/a/store"), line, _)? = error else {
      Issue.record("thrown: \(String(describing: error))")
      return
    }
  }

  @Test func `a description may be edited`() throws {
    let directory = try DataDirectory.open(path)
    let store = StoreDescription(name: try StoreName("a"), engine: .log)
    try directory.create(store)
    let edited =
      "larder store 1\n# slower is fine\n\nidentity = \(store.identity)\ndurability = none\nengine = log\nname = a"
    try folder.put("data/stores/a/store", edited.bytes)
    #expect(try directory.description(of: store.name).durability == Durability.none)
  }

  @Test func `anything that is not a data directory is refused`() throws {
    try folder.put("file", [])
    try folder.link("link", to: folder.path)
    for name in ["file", "link"] {
      #expect(throws: DataDirectoryError.self) { try DataDirectory.open(folder.file(name)) }
    }
    let directory = try DataDirectory.open(path)
    try folder.put("data/stores/stray", [])
    #expect(throws: DataDirectoryError.self) { try directory.stores() }
    _ = directory.path
  }

  @Test func `a format of another version is refused`() throws {
    _ = try DataDirectory.open(path)
    try folder.put("data/format", "larder data directory 2\n".bytes)
    #expect(throws: DataDirectoryError.self) { try DataDirectory.open(path) }
  }
}
