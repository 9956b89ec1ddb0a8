import Testing
import Wire

/// Records, key lists and scans beyond the vectors: limits, offsets in a larger body, and every cut.
struct RecordsTests {
  private let key: [UInt8] = Array("key".utf8)
  private let value: [UInt8] = Array("value".utf8)

  @Test(arguments: [0, 1, 500] as [UInt64], [nil, 0, 9] as [UInt64?])
  func `a write record has what was encoded`(_ expiry: UInt64, _ revision: UInt64?) throws {
    for ifAbsent in [false, true] {
      for kind in [ValueKind.single, .list] {
        var buffer = ByteBuffer()
        buffer.append(UInt32(1))
        unsafe buffer.appendWrite(
          kind: kind, expiry: expiry, ifAbsent: ifAbsent, ifRevision: revision, key: key.span.bytes,
          value: value.span.bytes)
        let bytes = buffer.toArray()
        let write = try #require(bytes.write(at: 4))
        #expect(write.kind == kind)
        #expect(write.expiry == expiry)
        #expect(write.revision == revision ?? 0)
        #expect((write.flags & RecordFlags.ifRevision != 0) == (revision != nil))
        #expect((write.flags & RecordFlags.ifAbsent != 0) == ifAbsent)
        #expect(Array(bytes[write.key]) == key)
        #expect(Array(bytes[write.value]) == value)
        #expect(write.end == bytes.count)
        for size in 0..<bytes.count {
          let cut = Array(bytes[..<size])
          #expect(cut.write(at: 4) == nil)
        }
      }
    }
  }

  @Test func `unknown kinds and flags of a write record are refused`() {
    for kind in UInt8.min...UInt8.max {
      let bytes = [kind, 0, 0, 0, 0, 0, 0, 0]
      #expect((bytes.write() != nil) == (kind == 1 || kind == 2))
    }
    for flags in UInt8.min...UInt8.max {
      let bytes = [1, flags] + [UInt8](repeating: 0, count: 30)
      #expect((bytes.write() != nil) == (flags < 8))
    }
  }

  @Test func `unknown kinds and flags of an entry record are refused`() {
    for kind in UInt8.min...UInt8.max {
      let bytes = [kind] + [UInt8](repeating: 0, count: 15)
      #expect((bytes.entry() != nil) == (kind <= 2))
    }
    for flags in UInt8.min...UInt8.max {
      let bytes = [1, flags] + [UInt8](repeating: 0, count: 21) + [1]
      #expect((bytes.entry() != nil) == (flags < 2))
    }
  }

  @Test func `revisions that no store can have, and expiries of zero, are refused`() {
    for (revision, isValid) in [(0, true), (UInt64(Int64.max), true), (1 << 63, false), (.max, false)]
      as [(UInt64, Bool)]
    {
      var buffer = ByteBuffer()
      unsafe buffer.appendEntry(
        kind: .single, revision: revision, key: .init(start: nil, count: 0), value: .init(start: nil, count: 0))
      #expect((buffer.toArray().entry() != nil) == isValid)
    }
    #expect(([1, 1] + [UInt8](repeating: 0, count: 22)).entry() == nil)
  }

  @Test func `sizes that reach past the end are refused, up to the maximum`() {
    for size: UInt32 in [1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] {
      for keySize: UInt16 in [0, 1, 0xFFFF] {
        var write = ByteBuffer()
        write.append(UInt16(1))
        write.append(keySize)
        write.append(size)
        #expect(write.toArray().write() == nil)
        write.append(UInt64(7))
        #expect(write.toArray().entry() == nil)
      }
    }
  }

  @Test func `a key list that is cut anywhere is never complete`() {
    let keys: [[UInt8]] = [[0x61], Array("🔑".utf8), [UInt8](repeating: 0x62, count: 4_096)]
    var buffer = ByteBuffer()
    buffer.append(UInt32(keys.count))
    for key in keys { unsafe buffer.appendListedKey(key.span.bytes) }
    let bytes = buffer.toArray()
    for size in 0...bytes.count {
      let cut = Array(bytes[..<size])
      guard let list = cut.keyList else {
        #expect(size < 4)
        continue
      }
      #expect(list.count == 3)
      #expect(list.keys == Array(keys.prefix(list.keys.count)))
      #expect(list.isComplete == (size == bytes.count))
    }
    #expect((bytes + [0]).keyList?.isComplete == false)
  }

  @Test func `a key list that announces too many keys ends where the bytes do`() throws {
    let bytes: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]
    let list = try #require(bytes.keyList)
    #expect(list.count == 0xFFFF_FFFF)
    #expect(list.keys == [[], []])
    #expect(!list.isComplete)
  }

  @Test func `a find that is cut anywhere, or has an extra byte, an unknown flag or a wrong size, is refused`() {
    var buffer = ByteBuffer()
    unsafe buffer.appendFind(
      limit: 3, skip: 4, selector: key.span.bytes, sort: value.span.bytes, fields: key.span.bytes,
      bookmark: value.span.bytes, index: "ages")
    let bytes = buffer.toArray()
    #expect(bytes.findRequest?.limit == 3 && bytes.findRequest?.index.count == 4)
    for size in 0..<bytes.count {
      #expect(Array(bytes[..<size]).findRequest == nil)
    }
    #expect((bytes + [0]).findRequest == nil)
    for (offset, byte) in [(0, 8), (0, 0x82), (0, 1), (1, 1), (2, 3), (3, 1)] as [(Int, UInt8)] {
      var wrong = bytes
      wrong[offset] = byte
      #expect(wrong.findRequest == nil, "byte \(offset) is \(byte)")
    }
    for offset in 16..<32 {
      var wrong = bytes
      wrong[offset] = 0xFF
      #expect(wrong.findRequest == nil, "byte \(offset)")
    }
  }

  @Test func `the result of a find ends the body and isn't an entry`() {
    let result = FindResult(
      revision: 1, examinedDocuments: 2, examinedKeys: 5, found: 3, nanoseconds: 4, text: "next")
    var buffer = ByteBuffer()
    buffer.append(UInt32(0))
    buffer.append(result)
    let bytes = buffer.toArray()
    #expect(bytes.findResult(at: 4) == result)
    #expect(bytes.entry(at: 4) == nil)
    for size in 0..<bytes.count {
      #expect(Array(bytes[..<size]).findResult(at: 4) == nil)
    }
    #expect((bytes + [0]).findResult(at: 4) == nil)
    for (offset, byte) in [(4, 1), (4, 4), (5, 1), (6, 1), (7, 1), (8, 31), (11, 0xFF)] as [(Int, UInt8)] {
      var wrong = bytes
      wrong[offset] = byte
      #expect(wrong.findResult(at: 4) == nil, "byte \(offset) is \(byte)")
    }
    #expect([UInt8](repeating: 3, count: 1).findResult() == nil)
  }

  @Test func `an aggregate that is cut in its selector, or has a nonzero byte or a wrong size, is refused`() {
    var buffer = ByteBuffer()
    unsafe buffer.appendAggregate(selector: key.span.bytes, aggregation: value.span.bytes)
    let bytes = buffer.toArray()
    let aggregation = 8 + key.count..<bytes.count
    #expect(bytes.aggregateRequest?.selector == 8..<8 + key.count)
    #expect(bytes.aggregateRequest?.aggregation == aggregation)
    for size in 0..<aggregation.lowerBound { #expect(Array(bytes[..<size]).aggregateRequest == nil) }
    #expect(Array(bytes[..<aggregation.lowerBound]).aggregateRequest?.aggregation.isEmpty == true)
    for (offset, byte) in [(0, 4), (1, 1), (2, 1), (3, 0x80), (4, 0xFF), (7, 0xFF)] as [(Int, UInt8)] {
      var wrong = bytes
      wrong[offset] = byte
      #expect(wrong.aggregateRequest == nil, "byte \(offset) is \(byte)")
    }
  }

  @Test(arguments: [true, false])
  func `a change of matching documents has an update, or it is a deletion`(isDelete: Bool) {
    for isDryRun in [true, false] {
      var buffer = ByteBuffer()
      if isDelete {
        unsafe buffer.appendChangeMatching(dryRun: isDryRun, selector: key.span.bytes, update: nil)
      } else {
        unsafe buffer.appendChangeMatching(dryRun: isDryRun, selector: key.span.bytes, update: value.span.bytes)
      }
      let bytes = buffer.toArray()
      let request = bytes.changeMatchingRequest
      #expect(request?.isDryRun == isDryRun && request?.isDelete == isDelete)
      #expect(request?.selector == 8..<8 + key.count && request?.update == 8 + key.count..<bytes.count)
      for size in 0..<8 + key.count { #expect(Array(bytes[..<size]).changeMatchingRequest == nil) }
      let other: UInt8 = (isDryRun ? 1 : 0) | (isDelete ? 0 : 2)
      for (offset, byte) in [(0, other), (0, 8), (0, 0x80), (1, 1), (2, 1), (3, 1), (7, 0xFF)] as [(Int, UInt8)] {
        var wrong = bytes
        wrong[offset] = byte
        #expect(wrong.changeMatchingRequest == nil, "byte \(offset) is \(byte)")
      }
    }
  }

  @Test func `the numbers of a change have one size`() {
    let changes = MatchingChanges(
      matched: 1, changed: 2, revision: 3, examinedDocuments: 4, examinedKeys: 5, nanoseconds: 6)
    var buffer = ByteBuffer()
    buffer.append(changes)
    let bytes = buffer.toArray()
    #expect(bytes.matchingChanges == changes && bytes.count == MatchingChanges.size)
    for size in 0..<bytes.count { #expect(Array(bytes[..<size]).matchingChanges == nil) }
    #expect((bytes + [0]).matchingChanges == nil)
  }

  @Test func `the reply for an ensured index has its name and whether it was created`() {
    #expect(([0] + "a".utf8).ensuredIndex == EnsuredIndex(name: "a", isCreated: false))
    #expect(([1] + "ab".utf8).ensuredIndex == EnsuredIndex(name: "ab", isCreated: true))
    for bytes: [UInt8] in [[], [0], [1], [2, 97], [0xFF, 97]] { #expect(bytes.ensuredIndex == nil) }
  }

  @Test(arguments: [Operation.page, .all])
  func `a scan that is cut anywhere, or has an extra byte, is refused`(_ operation: Operation) {
    var buffer = ByteBuffer()
    unsafe buffer.appendScan(
      page: operation == .page ? (limit: 3, offset: 4) : nil, prefix: key.span.bytes, after: value.span.bytes,
      reverse: true, keysOnly: false)
    let bytes = buffer.toArray()
    #expect(bytes.scanRequest(of: operation) != nil)
    for size in 0..<bytes.count {
      #expect(Array(bytes[..<size]).scanRequest(of: operation) == nil)
    }
    #expect((bytes + [0]).scanRequest(of: operation) == nil)
    for (offset, byte) in [(0, 8), (0, 0x80), (1, 1), (6, 1), (7, 1), (0, 1)] as [(Int, UInt8)] {
      var wrong = bytes
      wrong[offset] = byte
      #expect(wrong.scanRequest(of: operation) == nil, "byte \(offset) is \(byte)")
    }
  }
}
