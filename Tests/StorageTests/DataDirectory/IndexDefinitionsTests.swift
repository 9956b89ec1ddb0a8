import Documents
import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

struct IndexDefinitionsTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file("data") }
  private var file: String { "data/stores/a/indexes" }
  private let name: StoreName

  init() throws {
    folder = try TemporaryFolder()
    name = try StoreName("a")
  }

  /// Definitions of every kind: compound, descending, dotted, named, partial, and with characters that JSON escapes.
  static let indexes: [DocumentIndex] = [
    #"{"fields": ["name"]}"#, #"{"fields": ["name", {"age": "desc"}, "pet.species"], "name": "compound"}"#,
    #"{"fields": ["_rev"], "where": {"age": {"$gte": 18}, "tags": {"$in": ["a", "b\n", null, 1.5]}}}"#,
    #"{"fields": ["a\nb", "é\u2028", "x\\.y"], "name": "é \"quoted\"", "where": {"s": {"$regex": "^\\s+\n"}}}"#,
  ].map { try! DocumentIndex(parsing: $0) }

  /// Returns a definition that differs from those with other numbers.
  static func index(_ number: Int) throws -> DocumentIndex {
    try DocumentIndex(parsing: #"{"name": "i\#(number % 7)", "fields": ["f\#(number)"]}"#)
  }

  private func directory() throws -> DataDirectory {
    let directory = try DataDirectory.open(path)
    if try directory.stores().isEmpty { try directory.create(StoreDescription(name: name, engine: .log)) }
    return directory
  }

  // MARK: Reading and writing

  @Test func `definitions are read back after the directory is reopened`() throws {
    do {
      let directory = try directory()
      #expect(try directory.indexes(of: name) == [])
      try directory.setIndexes(Self.indexes, of: name)
    }
    #expect(try directory().indexes(of: name) == Self.indexes)
    try directory().setIndexes([Self.indexes[1]], of: name)
    #expect(try directory().indexes(of: name) == [Self.indexes[1]])
    try directory().setIndexes([], of: name)
    #expect(try directory().indexes(of: name) == [])
    #expect(try LocalFileSystem().list(path + "/stores/a").sorted() == ["files", "history", "indexes", "store"])
  }

  @Test func `the file of index definitions has the specified format`() throws {
    let index = try DocumentIndex(parsing: #"{"name": "byAge", "fields": [{"age": "desc"}]}"#)
    #expect(
      IndexDefinitions.fileBytes([index])
        == "larder indexes 1 228e0d48\n{\"name\":\"byAge\",\"fields\":[{\"age\":\"desc\"}]}\n".bytes)
    #expect(IndexDefinitions.fileBytes([]) == "larder indexes 1 00000000\n".bytes)
  }

  @Test func `dropping a store removes its index definitions`() throws {
    let directory = try directory()
    try directory.setIndexes(Self.indexes, of: name)
    try directory.drop(name)
    #expect(throws: DataDirectoryError.unknownStore(name)) { try directory.setIndexes([], of: name) }
    try directory.create(StoreDescription(name: name, engine: .directory))
    #expect(try directory.indexes(of: name) == [])
  }

  // MARK: Damage

  /// Returns the error of reading a file with these bytes.
  private func error(_ bytes: [UInt8]) throws -> IndexDefinitions.ParseError? {
    do throws(IndexDefinitions.ParseError) {
      _ = try IndexDefinitions.indexes(inFile: bytes)
      return nil
    } catch { return error }
  }

  /// Returns a file with the right checksum for these lines.
  private func file(_ lines: String) -> [UInt8] {
    "larder indexes 1 \(String(UInt64(lines.bytes.checksum()) | 1 << 32, radix: 16).dropFirst())\n\(lines)".bytes
  }

  @Test func `damage anywhere in the file of index definitions is detected`() throws {
    for bytes in [IndexDefinitions.fileBytes(Self.indexes), IndexDefinitions.fileBytes([])] {
      #expect(try error(bytes) == nil)
      for bit in 0..<bytes.count * 8 {
        var flipped = bytes
        flipped[bit / 8] ^= 1 << UInt8(bit % 8)
        #expect(try error(flipped) != nil, "bit \(bit)")
      }
      for count in 0..<bytes.count { #expect(try error(Array(bytes[..<count])) != nil, "\(count) bytes") }
      #expect(try error(bytes + "\n".bytes) != nil)
    }
  }

  @Test(arguments: [
    ("{\"fields\":[\"a\"]}\n{\"fields\":[]}\n", 3), ("{\"fields\":[\"a\"]}\n\n", 3), ("[1]\n", 2), ("{\"fields\"\n", 2),
    ("{\"fields\":[\"a\"],\"color\":1}\n", 2), ("{\"fields\":[\"a\"]}\n{\"fields\":[\"a\"]}\n", 3),
    ("{\"fields\":[\"a\"]}", 0), ("\n", 2),
    ("{\"fields\":[\"\u{FF}\"]}\n{\"fields\":[\"a\"],\"where\":{\"$no\":1}}\n", 3),
  ])
  func `lines that are not definitions are refused, even with the right checksum`(lines: String, number: Int) throws {
    #expect(try error(file(lines))?.line == number)
  }

  @Test func `a file of another version, with too many definitions or too many bytes is refused`() throws {
    #expect(
      try error("larder indexes 2 00000000\n".bytes)
        == .init(
          line: 1, reason: "it should be \"larder indexes 1\" and a checksum"))
    let lines = (0..<65).map { "{\"fields\":[\"f\($0)\"]}\n" }
    #expect(try error(file(lines[..<64].joined())) == nil)
    #expect(try error(file(lines.joined()))?.line == 66)
    let long = "{\"fields\":[\"a\"]}" + String(repeating: " ", count: IndexDefinitions.maxByteCount) + "\n"
    #expect(try error(file(long))?.reason.contains("more than 1048576 bytes") == true)
  }

  @Test func `a damaged file is named, and a strict server doesn't open its store`() throws {
    let directory = try directory()
    try directory.setIndexes(Self.indexes, of: name)
    var bytes = try folder.contents(file)
    bytes[40] ^= 1
    try folder.put(file, bytes)
    let damage = DataDirectoryError.damagedIndexes(path: folder.file(file), line: 0, reason: "the checksum is wrong")
    #expect(throws: damage) { try directory.indexes(of: name) }
    #expect(damage.description.hasPrefix("\(folder.file(file)): the checksum is wrong; "))
    #expect(throws: damage) { try StoreCatalog(data: directory).openAll(isStrict: true) { _, _ in } }
    try folder.put(file, [UInt8](repeating: 0x20, count: 2 << 20))
    #expect(throws: DataDirectoryError.self) { try directory.indexes(of: name) }
    try LocalFileSystem().remove(folder.file(file))
    try StoreCatalog(data: directory).openAll { _, _ in }
  }

  // MARK: Crashes

  /// Opens a data directory with the store on a simulated disk.
  private func open(_ place: String, _ disk: SimulatedDisk) throws -> DataDirectory {
    try DataDirectory.open(place, on: disk)
  }

  @Test func `an interrupted change leaves the old definitions or the new ones`() throws {
    let (old, new) = ([Self.indexes[0]], Self.indexes)
    var found: Set<Int> = []
    for (call, losesPower) in (1...20).flatMap({ [($0, false), ($0, true)] }) {
      let place = folder.file("cut-\(call)-\(losesPower)")
      // The lock is a local file, whatever the disk.
      try LocalFileSystem().createFolder(place)
      let disk = SimulatedDisk(seed: UInt64(call))
      disk.placeFolder(place)
      var isDone = false
      do {
        let directory = try open(place, disk)
        try directory.create(StoreDescription(name: name, engine: .directory))
        try directory.setIndexes(old, of: name)
        disk.injectedFailure = .init(number: call, errno: EIO, isPersistent: true)
        do {
          try directory.setIndexes(new, of: name)
          isDone = true
        } catch {}
      }
      if losesPower { disk.crash() } else { disk.kill() }
      let comment: Comment = "interrupted at call \(call), \(losesPower ? "by a power cut" : "by a kill")"
      let directory = try open(place, disk)
      let indexes = try directory.indexes(of: name)
      #expect(indexes == new || indexes == old && !isDone, comment)
      #expect(call < 20 || isDone, "there are more calls now than the test interrupts")
      found.insert(indexes.count)
      // What was left behind is in nobody's way.
      try directory.setIndexes(old, of: name)
      #expect(try directory.indexes(of: name) == old)
    }
    #expect(found == [old.count, new.count])
  }

  @Test func `definitions that a store was opened with survive a power cut`() throws {
    for seed: UInt64 in 1...20 {
      let place = folder.file("opened-\(seed)")
      try LocalFileSystem().createFolder(place)
      let disk = SimulatedDisk(seed: seed)
      disk.placeFolder(place)
      let description = StoreDescription(name: name, engine: .directory)
      do {
        let directory = try open(place, disk)
        try directory.create(description)
        // The process ends before the folder is synced.
        disk.injectedFailure = .init(.syncFolder, number: 1, errno: EIO)
        #expect(throws: DataDirectoryError.self) { try directory.setIndexes(Self.indexes, of: name) }
      }
      disk.kill()
      do { try Store.open(description, in: try open(place, disk)).store.close() }
      disk.crash(reordersNames: true)
      #expect(try open(place, disk).indexes(of: name) == Self.indexes)
    }
  }

  @Test func `after random changes and power cuts, the definitions are the last ones or those being written`() throws {
    for seed in SeededGenerator.seeds(40) {
      var random = SeededGenerator(seed: seed)
      let place = folder.file("random-\(seed)")
      try LocalFileSystem().createFolder(place)
      let disk = SimulatedDisk(seed: seed)
      disk.placeFolder(place)
      var directory: DataDirectory? = try open(place, disk)
      try directory?.create(StoreDescription(name: name, engine: .log))
      // What a reader may find: the last definitions whose write returned, and those whose write failed since.
      var possible: [[DocumentIndex]] = [[]]
      for _ in 0..<30 {
        if Int.random(in: 0..<4, using: &random) == 0 {
          disk.injectedFailure = .init(
            number: Int.random(in: 1...8, using: &random), errno: EIO, isPersistent: Bool.random(using: &random))
        }
        let indexes = try (0..<Int.random(in: 0...5, using: &random)).map { try Self.index($0) }
          .shuffled(using: &random)
        do {
          try directory?.setIndexes(indexes, of: name)
          possible = [indexes]
        } catch { possible.append(indexes) }
        guard Int.random(in: 0..<3, using: &random) == 0 else { continue }
        directory = nil
        let losesPower = Bool.random(using: &random)
        if losesPower { disk.crash() } else { disk.kill() }
        disk.injectedFailure = nil
        directory = try open(place, disk)
        let found = try #require(try directory?.indexes(of: name))
        #expect(possible.contains(found), "seed \(seed)")
        // What survives a kill may not be on disk yet.
        if losesPower { possible = [found] }
      }
    }
  }
}
