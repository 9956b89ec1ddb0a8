import Documents
import Platform
import TestSupport
import Testing

@testable import Storage

@Suite("Damaged stores of a data directory")
struct DamagedStoreTests {
  /// What is wrong with a store's folder.
  enum Damage: CaseIterable {
    case description, noDescription, noFiles, aFile, engineFiles, unreadable
  }

  private let folder: TemporaryFolder
  private let (good, bad): (StoreName, StoreName)
  private var path: String { folder.file("data") }

  init() throws {
    folder = try TemporaryFolder()
    (good, bad) = (try StoreName("good"), try StoreName("bad"))
  }

  /// Makes two stores with an entry each.
  private func makeStores(_ engine: EngineKind) throws {
    let catalog = StoreCatalog(data: try DataDirectory.open(path))
    defer { catalog.close() }
    for name in [good, bad] {
      try catalog.create(name, StoreSpecification(engine)).putWhenThereIsSpace([1], [2])
    }
  }

  private func damage(_ damage: Damage, _ engine: EngineKind) throws {
    let store = "data/stores/bad"
    let files = LocalFileSystem()
    switch damage {
    case .description: try folder.put("\(store)/store", "larder store 1\nname = bad\n".bytes)
    case .noDescription: try files.remove(folder.file("\(store)/store"))
    case .noFiles: try files.removeAll(folder.file("\(store)/files"))
    case .aFile:
      try files.removeAll(folder.file(store))
      try folder.put(store, [1])
    case .engineFiles:
      let name = engine == .log ? "manifest" : ".journal"
      try folder.put("\(store)/files/\(name)", [UInt8](repeating: 7, count: 2_048))
    case .unreadable:
      let name = engine == .log ? "manifest" : ".journal"
      try files.remove(folder.file("\(store)/files/\(name)"))
      try files.createFolder(folder.file("\(store)/files/\(name)"))
    }
  }

  @Test(arguments: [EngineKind.log, .directory], Damage.allCases)
  func `a damaged store is named, keeps its name until it is dropped, and the others are served`(
    engine: EngineKind, kind: Damage
  ) throws {
    try makeStores(engine)
    try damage(kind, engine)
    var found: [String: String] = [:]
    do {
      let catalog = StoreCatalog(data: try DataDirectory.open(path))
      defer { catalog.close() }
      try catalog.openAll { _, opening in
        #expect(opening.remarks == [])
      } onDamage: {
        found[$0] = $1
      }
      let reason = try #require(found["bad"])
      #expect(found.count == 1 && reason.hasPrefix(folder.file("data/stores/bad")), "\(found)")
      #expect(catalog.damagedNames == [bad] && catalog.list().map(\.name) == [good])
      #expect(try catalog.open(good).access { $0.copy(of: [1])?.entry.value } == [2])
      let error = StorageError.storeDamaged(bad, reason)
      #expect("\(error)".contains(reason))
      #expect(throws: error) { try catalog.open(bad) }
      #expect(throws: error) { try catalog.create(bad, StoreSpecification(.memory)) }
      #expect(throws: error) { try catalog.ensureIndex(DocumentIndex(["age"], name: "a"), of: bad) }
      // A store in the settings may be damaged.
      try catalog.ensureAll([(bad, StoreSpecification(engine))])
      #expect(catalog.damagedNames == [bad])
    }
    // Nothing was changed, so a strict server refuses.
    #expect(throws: (any Error).self) {
      let catalog = StoreCatalog(data: try DataDirectory.open(path))
      defer { catalog.close() }
      try catalog.openAll(isStrict: true) { _, _ in }
    }
    let catalog = StoreCatalog(data: try DataDirectory.open(path))
    defer { catalog.close() }
    try catalog.openAll { _, _ in }
    try catalog.drop(bad)
    #expect(catalog.damagedNames == [])
    #expect(throws: StorageError.unknownStore(bad)) { try catalog.open(bad) }
    try catalog.create(bad, StoreSpecification(engine))
  }

  @Test func `an empty lost+found is ignored, and other things among the stores are named`() throws {
    try makeStores(.log)
    try LocalFileSystem().createFolder(folder.file("data/stores/lost+found"))
    do {
      let catalog = StoreCatalog(data: try DataDirectory.open(path))
      defer { catalog.close() }
      try catalog.openAll(isStrict: true) { _, _ in }
      #expect(catalog.list().map(\.name) == [bad, good])
    }
    #expect(try DataDirectoryCheck(path).stores.map(\.name) == ["bad", "good"])
    try folder.put("data/stores/lost+found/#17", [1])
    try folder.put("data/stores/.DS_Store", [1])
    let catalog = StoreCatalog(data: try DataDirectory.open(path))
    defer { catalog.close() }
    var found: [String] = []
    try catalog.openAll { _, _ in
    } onDamage: { name, _ in
      found.append(name)
    }
    #expect(found == [".DS_Store", "lost+found"] && catalog.damagedNames == [])
    #expect(catalog.list().map(\.name) == [bad, good])
  }

  @Test(arguments: [EngineKind.log, .directory])
  func `a store with damaged definitions of indexes is served without them, until they are created again`(
    engine: EngineKind
  ) throws {
    try makeStores(engine)
    let (age, name) = (try DocumentIndex(["age"], name: "age"), try DocumentIndex(["name"], name: "name"))
    do {
      let catalog = StoreCatalog(data: try DataDirectory.open(path))
      defer { catalog.close() }
      try catalog.openAll { _, _ in }
      try catalog.ensureIndex(age, of: bad)
    }
    let file = "data/stores/bad/indexes"
    var bytes = try folder.contents(file)
    bytes[40] ^= 1
    try folder.put(file, bytes)
    for isRepaired in [false, true] {
      var remarks: [String] = []
      let catalog = StoreCatalog(data: try DataDirectory.open(path))
      defer { catalog.close() }
      try catalog.openAll {
        remarks += $1.remarks
      } onDamage: {
        #expect(Bool(false), "\($0): \($1)")
      }
      let store = try catalog.open(bad)
      func isDamaged() -> UInt64? { store.fileFigures.first { $0.name == "indexes_damaged" }?.value }
      #expect(isDamaged() == (isRepaired ? 0 : 1) && store.indexReports.map(\.index) == (isRepaired ? [name] : []))
      #expect(store.access { $0.copy(of: [1])?.entry.value } == [2])
      if isRepaired {
        #expect(remarks == [])
      } else {
        let remark = "\(folder.file(file)): the checksum is wrong; the store is served without indexes"
        #expect(remarks.count == 1 && remarks[0].hasPrefix(remark), "\(remarks)")
        #expect(try folder.contents(file) == bytes)
        try catalog.ensureIndex(name, of: bad)
        #expect(isDamaged() == 0)
        #expect(try folder.contents("data/stores/bad/damaged-indexes") == bytes)
      }
    }
  }
}
