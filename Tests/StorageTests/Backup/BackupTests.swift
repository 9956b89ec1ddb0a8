import Documents
import Testing

@testable import Storage

struct BackupTests {
  static let header = BackupHeader(
    made: 1_800_000_000_000, store: "orders", specification: "log?durability=interval:1s")

  /// The header of a store with indexes, in version 2.
  static let indexedHeader = BackupHeader(
    made: header.made, store: header.store, specification: header.specification,
    indexes: [
      #"{"name": "byAge", "fields": ["name", {"age": "desc"}]}"#,
      #"{"name": "é", "fields": ["pet.species"], "where": {"pet.age": {"$gte": 3}}}"#,
    ].map { try! DocumentIndex(parsing: $0) })

  /// Entries of every kind: empty, expiring, a list, binary, and large.
  static let entries = [
    BackupEntry(key: "a", kind: .single, value: [], expiry: 0, revision: 9),
    BackupEntry(key: "b", kind: .single, value: [0, 0xFF], expiry: 1_900_000_000_000, revision: 3),
    BackupEntry(key: "list", kind: .list, value: [1, 0, 0, 0, 7, 0, 0, 0, 0], expiry: 0, revision: 9),
    BackupEntry(key: "é", kind: .single, value: [UInt8](repeating: 0x61, count: 40), expiry: 0, revision: .max),
  ]

  static func written(_ entries: [BackupEntry] = entries, _ header: BackupHeader = header) -> [UInt8] {
    var writer = BackupWriter(header)
    var bytes: [UInt8] = []
    for entry in entries {
      writer.add(entry.key, entry.value, kind: entry.kind, expiry: entry.expiry, revision: entry.revision)
      bytes += writer.take()
    }
    return bytes + writer.finish()
  }

  /// Reads a backup that arrives in pieces of the given size.
  static func read(
    _ bytes: [UInt8], pieces: Int = .max
  ) throws(BackupDamage) -> (header: BackupHeader?, entries: [BackupEntry]) {
    var reader = BackupReader()
    var entries: [BackupEntry] = []
    var end = min(pieces, bytes.count)
    while true {
      let (start, here) = (reader.offset, end)
      let part = unsafe try bytes.withBytes { (all) throws(BackupDamage) in
        unsafe try reader.next(UnsafeRawBufferPointer(rebasing: all[start..<here]), isWhole: here == all.count)
      }
      switch part {
      case .header: continue
      case .entry(let entry): entries.append(entry)
      case .incomplete: end += min(pieces, bytes.count - end)
      case .end:
        #expect(reader.offset == bytes.count && reader.entries == UInt64(entries.count))
        return (reader.header, entries)
      }
    }
  }

  @Test(arguments: [1, 3, 1_000]) func `a backup can be read in pieces of any size`(pieces: Int) throws {
    let (header, entries) = try Self.read(Self.written(), pieces: pieces)
    #expect(header == Self.header)
    #expect(entries == Self.entries)
    #expect(try Self.read(Self.written([]), pieces: pieces).entries == [])
    for entries in [Self.entries, []] {
      let backup = try Self.read(Self.written(entries, Self.indexedHeader), pieces: pieces)
      #expect(backup.header == Self.indexedHeader && backup.entries == entries)
    }
  }

  @Test func `a store without indexes has a backup of version 1, and others one of version 2`() {
    let (plain, indexed) = (Self.written(), Self.written(Self.entries, Self.indexedHeader))
    #expect(plain[8..<10].elementsEqual([1, 0]) && indexed[8..<10].elementsEqual([2, 0]))
  }

  @Test func `a backup of an unknown version is refused at once`() {
    var bytes = Array(Self.written()[..<24])
    bytes[8] = 3
    let damage = BackupDamage(
      offset: 8, reason: "the format has version 3, but this program supports only versions 1 and 2")
    #expect(throws: damage) { try Self.read(bytes) }
  }

  /// Returns a header of version 2 with these bytes as definitions, and the right checksum.
  private static func header(definitions: String) -> [UInt8] {
    let plain = header.bytes
    var bytes = Array(plain[..<24])
    bytes.append(littleEndian: UInt32(definitions.utf8.count))
    bytes += plain[24...] + Array(definitions.utf8)
    bytes[8] = 2
    bytes.replace(at: 12, littleEndian: bytes.checksum(excluding: 12..<16))
    return bytes
  }

  @Test(arguments: [
    "{}\n", "[]\n", "{\"fields\":[\"a\"]}", "\n", "{\"fields\":[\"a\"]}\n{\"fields\":[\"a\"]}\n",
    (0..<65).map { "{\"fields\":[\"f\($0)\"]}\n" }.joined(),
  ])
  func `definitions that a store can't have are refused, even with the right checksum`(definitions: String) {
    do throws(BackupDamage) {
      _ = try Self.read(Self.header(definitions: definitions))
      Issue.record("\(definitions) was accepted")
    } catch { #expect(error.offset == 28 + 6 + 26 && error.reason.hasPrefix("the index definitions are invalid: ")) }
  }

  @Test(arguments: [0, 1 << 20 + 1, .max]) func `an impossible size of the definitions is refused at once`(
    byteCount: UInt32
  ) {
    var bytes = Self.indexedHeader.bytes
    bytes.replace(at: 24, littleEndian: byteCount)
    let damage = BackupDamage(offset: 24, reason: "the size of the index definitions is impossible")
    #expect(throws: damage) { try Self.read(Array(bytes[..<28])) }
  }

  @Test func `a separated value is read back`() throws {
    let value = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let entries = [BackupEntry(key: "large", kind: .single, value: value, expiry: 5, revision: 1)]
    #expect(try Self.read(Self.written(entries), pieces: 4_096).entries == entries)
  }

  @Test func `every flipped bit in a backup is detected where it is or earlier`() throws {
    for bytes in [Self.written(), Self.written(Self.entries, Self.indexedHeader)] {
      for bit in 0..<bytes.count * 8 {
        var flipped = bytes
        flipped[bit / 8] ^= 1 << UInt8(bit % 8)
        do {
          _ = try Self.read(flipped)
          Issue.record("flipped bit \(bit) was not detected")
        } catch { #expect(error.offset <= bit / 8) }
      }
    }
  }

  @Test func `every truncation of a backup is detected, and so are bytes after its end`() throws {
    for bytes in [Self.written(), Self.written(Self.entries, Self.indexedHeader)] {
      for count in 0..<bytes.count {
        do {
          _ = try Self.read(Array(bytes[..<count]))
          Issue.record("\(count) bytes were accepted as a whole backup")
        } catch { #expect(error.offset <= count) }
      }
      #expect(throws: BackupDamage(offset: bytes.count, reason: "something follows the end")) {
        try Self.read(bytes + [0])
      }
    }
  }

  @Test func `records that are missing, repeated or reordered are detected`() throws {
    let bytes = Self.written()
    let places = (0...Self.entries.count).map {
      Self.written(Array(Self.entries[..<$0])).count - BackupTrailer.byteCount
    }
    let records = (0..<Self.entries.count).map { Array(bytes[places[$0]..<places[$0 + 1]]) }
    let (head, end) = (Array(bytes[..<places[0]]), Array(bytes[places[Self.entries.count]...]))
    let orders = [[0, 1, 2], [0, 1, 2, 3, 3], [1, 0, 2, 3], [], [0, 1, 3]]
    for order in orders {
      #expect(throws: BackupDamage.self) { try Self.read(head + order.flatMap { records[$0] } + end) }
    }
    #expect(try Self.read(head + records.flatMap { $0 } + end).entries == Self.entries)
  }

  @Test func `an impossible length in a backup is refused at once`() throws {
    let head = Array(Self.written([]).dropLast(BackupTrailer.byteCount))
    #expect(throws: BackupDamage(offset: head.count, reason: "a record's length is impossible")) {
      try Self.read(head + [0xFF, 0xFF, 0xFF, 0xFF])
    }
  }
}
