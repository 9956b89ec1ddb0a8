import TestSupport
import Testing

@testable import Storage

@Suite struct CommitReaderTests {
  private struct Operation: Equatable {
    var kind: CommitBuffer.Kind
    var revision: UInt64
    var expiry: UInt64 = 0
    var key: [UInt8] = []
    var value: [UInt8] = []
  }

  private static func operations(_ bytes: [UInt8]) throws -> [Operation] {
    unsafe try bytes.withUnsafeBytes { bytes in
      var operations: [Operation] = []
      var reader = unsafe CommitReader(bytes)
      while let next = try reader.next() {
        let (key, value) = unsafe (Array(next.key), Array(next.value))
        let available = unsafe Array(bytes[next.valueOffset..<next.valueOffset + value.count])
        #expect(available == value)
        operations.append(
          Operation(kind: next.kind, revision: next.revision, expiry: next.expiry, key: key, value: value))
      }
      return operations
    }
  }

  private static func bytes(of operations: [Operation]) -> [UInt8] {
    var buffer = CommitBuffer()
    for operation in operations {
      unsafe operation.key.withBytes { key in
        unsafe operation.value.withBytes { value in
          switch operation.kind {
          case .single, .list:
            unsafe buffer.put(
              key, value, kind: operation.kind, expiry: operation.expiry, revision: operation.revision)
          case .delete: unsafe buffer.delete(key, revision: operation.revision)
          case .deleteAll: buffer.deleteAll(revision: operation.revision)
          }
        }
      }
    }
    buffer.seal()
    return unsafe Array(buffer.bytes)
  }

  private static func random(_ count: Int, valueLimit: Int, _ random: inout SeededGenerator) -> [Operation] {
    var revision: UInt64 = 0
    return (0..<count).map { _ in
      if revision == 0 || Int.random(in: 0..<3, using: &random) > 0 { revision += .random(in: 1...3, using: &random) }
      let key = [UInt8](repeating: .random(in: 0...255, using: &random), count: .random(in: 1...50, using: &random))
      switch Int.random(in: 0..<10, using: &random) {
      case 0: return Operation(kind: .deleteAll, revision: revision)
      case 1, 2: return Operation(kind: .delete, revision: revision, key: key)
      default:
        let isLarge = Int.random(in: 0..<8, using: &random) == 0
        let size = isLarge ? Int.random(in: 0...valueLimit, using: &random) : .random(in: 0...40, using: &random)
        return Operation(
          kind: Bool.random(using: &random) ? .single : .list, revision: revision,
          expiry: Bool.random(using: &random) ? .random(in: 1 ... .max, using: &random) : 0, key: key,
          value: [UInt8](repeating: .random(in: 0...255, using: &random), count: size))
      }
    }
  }

  @Test func `everything written to a buffer is read back`() throws {
    var random = SeededGenerator.announced()
    for _ in 0..<30 {
      let operations = Self.random(.random(in: 0...60, using: &random), valueLimit: 80_000, &random)
      #expect(try Self.operations(Self.bytes(of: operations)) == operations)
    }
  }

  @Test func `values around the threshold for separated values are read back`() throws {
    let sizes = [
      0, CommitBuffer.separatedByteCount - 1, CommitBuffer.separatedByteCount, CommitBuffer.separatedByteCount + 1,
    ]
    let operations = sizes.map { size in
      Operation(kind: .single, revision: 1, key: [1], value: [UInt8](repeating: 7, count: size))
    }
    #expect(try Self.operations(Self.bytes(of: operations)) == operations)
  }

  @Test func `every flipped bit and every truncation of a commit is detected`() throws {
    var random = SeededGenerator.announced()
    let operations = Self.random(12, valueLimit: 40, &random)
    let bytes = Self.bytes(of: operations)
    for bit in 0..<bytes.count * 8 {
      var flipped = bytes
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: CommitDamage.self) { try Self.operations(flipped) }
    }
    for count in 0..<bytes.count {
      // A truncation between records leaves fewer of them.
      guard let found = try? Self.operations(Array(bytes[..<count])) else { continue }
      #expect(operations.starts(with: found) && found.count < operations.count)
    }
  }

  @Test func `a flipped bit in a separated value is detected`() throws {
    let value = [UInt8](repeating: 3, count: CommitBuffer.separatedByteCount)
    var bytes = Self.bytes(of: [Operation(kind: .list, revision: 9, key: [1, 2], value: value)])
    bytes[bytes.count - 5] ^= 0x10
    #expect(throws: CommitDamage(offset: 0, reason: "a value's checksum is wrong")) { try Self.operations(bytes) }
  }

  @Test func `a reference takes the place of a value only where that is expected`() throws {
    let value = SeparatedValue(
      file: ValueFile(try SimulatedDisk(seed: 1).open("/value", .creating), path: "/value"), offset: 0,
      byteCount: 40_000, checksum: 0xABCD)
    let reference = ValueReference(position: 1 << 40, offset: 77)
    var buffer = CommitBuffer()
    unsafe [5, 6].withBytes { key in
      unsafe buffer.put(key, referringTo: value, at: reference, kind: .list, expiry: 99, revision: 3)
      unsafe buffer.put(key, key, kind: .single, expiry: 0, revision: 3)
    }
    buffer.seal()
    let bytes = unsafe Array(buffer.bytes)
    unsafe try bytes.withBytes { (bytes) throws in
      var reader = unsafe CommitReader(bytes, mayHaveReferences: true)
      let operation = try #require(try reader.next())
      #expect(operation.reference == reference && operation.valueByteCount == value.byteCount)
      #expect(unsafe operation.valueChecksum == value.checksum && operation.value.isEmpty && operation.expiry == 99)
      #expect(operation.invalidContents == nil && operation.isSeparated)
      let next = try #require(try reader.next())
      #expect(unsafe next.reference == nil && Array(next.value) == [5, 6])
      #expect(try reader.next() == nil)
    }
    #expect(throws: CommitDamage(offset: 0, reason: "an operation is malformed")) { try Self.operations(bytes) }
    for index in bytes.indices {
      var flipped = bytes
      flipped[index] ^= 0x04
      unsafe flipped.withBytes { bytes in
        var reader = unsafe CommitReader(bytes, mayHaveReferences: true)
        #expect(throws: CommitDamage.self) { while try reader.next() != nil {} }
      }
    }
  }

  @Test func `a log's sync mark is not a commit, and the reader stays before it`() throws {
    let before = Self.bytes(of: [Operation(kind: .delete, revision: 1, key: [1])])
    let mark = SyncMark(revision: 1, identity: 7, syncedByteCount: 64)
    unsafe try (before + mark.bytes).withBytes { (bytes) throws in
      var reader = unsafe CommitReader(bytes)
      #expect(try reader.next()?.kind == .delete)
      for _ in 0..<2 {
        let damage = CommitDamage(offset: before.count, reason: "an operation is malformed")
        #expect(throws: damage) { try reader.next() }
      }
    }
  }
}
