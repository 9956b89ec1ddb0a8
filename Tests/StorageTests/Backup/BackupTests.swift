import Testing

@testable import Storage

struct BackupTests {
  static let header = BackupHeader(
    made: 1_800_000_000_000, store: "orders", specification: "log?durability=interval:1s")

  /// Entries of every kind: empty, expiring, a list, binary, and large.
  static let entries = [
    BackupEntry(key: "a", kind: .single, value: [], expiry: 0, revision: 9),
    BackupEntry(key: "b", kind: .single, value: [0, 0xFF], expiry: 1_900_000_000_000, revision: 3),
    BackupEntry(key: "list", kind: .list, value: [1, 0, 0, 0, 7, 0, 0, 0, 0], expiry: 0, revision: 9),
    BackupEntry(key: "é", kind: .single, value: [UInt8](repeating: 0x61, count: 40), expiry: 0, revision: .max),
  ]

  static func written(_ entries: [BackupEntry] = entries) -> [UInt8] {
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
  }

  @Test func `a separated value is read back`() throws {
    let value = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    let entries = [BackupEntry(key: "large", kind: .single, value: value, expiry: 5, revision: 1)]
    #expect(try Self.read(Self.written(entries), pieces: 4_096).entries == entries)
  }

  @Test func `every flipped bit is detected, no later than where it is`() throws {
    let bytes = Self.written()
    for bit in 0..<bytes.count * 8 {
      var flipped = bytes
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      do {
        _ = try Self.read(flipped)
        Issue.record("flipped bit \(bit) was not detected")
      } catch { #expect(error.offset <= bit / 8) }
    }
  }

  @Test func `every truncation is detected, and so are bytes after the end`() throws {
    let bytes = Self.written()
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

  @Test func `an impossible length is refused at once`() throws {
    let head = Array(Self.written([]).dropLast(BackupTrailer.byteCount))
    #expect(throws: BackupDamage(offset: head.count, reason: "a record's length is impossible")) {
      try Self.read(head + [0xFF, 0xFF, 0xFF, 0xFF])
    }
  }
}
