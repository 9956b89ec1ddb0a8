import Documents
import Platform

/// A record in a store's file `index-keys` (Protocol/data-directory.md, §5).
enum KeptKeyRecord {
  static let firstLine = Array("larder index keys 1\n".utf8)
  /// The checksum, the size and the kind.
  private static let headerByteCount = 12
  /// More than the largest record has. Whatever claims to be larger is damaged.
  private static let maxByteCount = 2 << 20
  private static let chunkByteCount = 256 << 10
  /// The part of a record of keys that has a fixed size.
  private static let keysHeaderByteCount = headerByteCount + 44

  /// Distinguishes a value from any other that its store has had.
  struct Value: Equatable {
    let revision: UInt64
    let byteCount: Int
    /// The CRC32C of the value.
    let checksum: UInt32
  }

  private enum Kind {
    static let definition: UInt32 = 0
    static let keys: UInt32 = 1
  }

  // MARK: Writing

  /// Appends the definition of an index. Definitions are numbered from 0 on, in the order of their records.
  static func append(definition: [UInt8], to bytes: inout [UInt8]) {
    let start = begin(Kind.definition, in: &bytes)
    bytes += definition
    end(start, in: &bytes)
  }

  /// Appends the keys of a document in one index.
  /// - Parameters:
  ///   - number: The number of the index's definition.
  ///   - index: The number of the index among those of the keys.
  static func append(
    _ keys: borrowing IndexKeys, of index: Int, definition number: UInt32, id: Span<UInt8>, _ value: Value,
    to bytes: inout [UInt8]
  ) {
    let start = begin(Kind.keys, in: &bytes)
    let isOverflow = keys.isOverflow(of: index)
    let count = isOverflow ? 0 : keys.count(of: index)
    bytes.append(littleEndian: number)
    bytes.append(littleEndian: value.revision)
    bytes.append(littleEndian: UInt64(value.byteCount))
    bytes.append(littleEndian: value.checksum)
    bytes.append(littleEndian: keys.multiFields(of: index))
    bytes.append(littleEndian: UInt32(isOverflow ? 1 : 0))
    bytes.append(littleEndian: UInt32(id.count))
    bytes.append(littleEndian: UInt32(count))
    bytes.append(littleEndian: UInt32(0))
    for position in id.indices { bytes.append(id[position]) }
    for key in 0..<count { bytes.append(littleEndian: UInt32(keys.range(of: key, in: index).count)) }
    for key in 0..<count { bytes += keys.bytes[keys.range(of: key, in: index)] }
    end(start, in: &bytes)
  }

  private static func begin(_ kind: UInt32, in bytes: inout [UInt8]) -> Int {
    let start = bytes.count
    bytes.append(littleEndian: UInt64(0))
    bytes.append(littleEndian: kind)
    return start
  }

  private static func end(_ start: Int, in bytes: inout [UInt8]) {
    bytes.replace(at: start + 4, littleEndian: UInt32(bytes.count - start))
    let checksum = unsafe bytes.withBytes { unsafe UnsafeRawBufferPointer(rebasing: $0[(start + 4)...]).checksum() }
    bytes.replace(at: start, littleEndian: checksum)
  }

  // MARK: Reading

  /// Calls `body` with the intact records of a file and where they are, up to the first that is not intact.
  /// - Returns: The end of the last intact record; 0 if the file doesn't begin as it should.
  static func visit(
    _ file: any File, _ body: (Contents, Range<Int>) throws(SystemError) -> Void
  ) throws(SystemError) -> Int {
    let end = try file.byteCount()
    var start = firstLine.count
    guard try file.bytes(at: 0, count: start) == firstLine else { return 0 }
    var chunk: [UInt8] = []
    // The offset of the chunk in the file.
    var chunkStart = start
    while start < end {
      let offset = start - chunkStart
      let rest = chunk.count - offset
      let byteCount = rest < headerByteCount ? headerByteCount : Int(chunk.integer(at: offset + 4, as: UInt32.self))
      guard (headerByteCount...maxByteCount).contains(byteCount), byteCount <= end - start else { break }
      guard rest >= byteCount else {
        (chunk, chunkStart) = (try file.bytes(at: start, count: max(chunkByteCount, byteCount)), start)
        // The file became shorter meanwhile.
        if chunk.count < byteCount { break }
        continue
      }
      guard let contents = contents(of: chunk[offset..<offset + byteCount]) else { break }
      try body(contents, start..<start + byteCount)
      start += byteCount
    }
    return start
  }

  /// Returns what a whole record has; nil if it is damaged.
  static func contents(of record: ArraySlice<UInt8>) -> Contents? {
    let bytes = Array(record)
    guard bytes.count >= headerByteCount, bytes.checksum(excluding: 0..<4) == bytes.integer(at: 0, as: UInt32.self)
    else { return nil }
    switch bytes.integer(at: 8, as: UInt32.self) {
    case Kind.definition: return .definition(Array(bytes[headerByteCount...]))
    case Kind.keys: return Keys(bytes).map(Contents.keys)
    default: return nil
    }
  }

  enum Contents {
    case definition([UInt8])
    case keys(Keys)
  }

  /// The keys of a document in one index.
  struct Keys {
    /// The whole record.
    let bytes: [UInt8]
    private let firstSize: Int
    private let firstKey: Int
    private let keyCount: Int

    fileprivate init?(_ bytes: [UInt8]) {
      guard bytes.count >= keysHeaderByteCount else { return nil }
      self.bytes = bytes
      keyCount = Int(bytes.integer(at: 48, as: UInt32.self))
      firstSize = keysHeaderByteCount + Int(bytes.integer(at: 44, as: UInt32.self))
      firstKey = firstSize + 4 * keyCount
      guard firstKey <= bytes.count, sizes.reduce(firstKey, +) == bytes.count else { return nil }
    }

    private var sizes: [Int] { (0..<keyCount).map { Int(bytes.integer(at: firstSize + 4 * $0, as: UInt32.self)) } }

    /// The number of the index's definition.
    var definition: UInt32 { bytes.integer(at: 12, as: UInt32.self) }

    var value: Value {
      Value(
        revision: bytes.integer(at: 16, as: UInt64.self),
        byteCount: Int(truncatingIfNeeded: bytes.integer(at: 24, as: UInt64.self)),
        checksum: bytes.integer(at: 32, as: UInt32.self))
    }

    var id: ArraySlice<UInt8> { bytes[keysHeaderByteCount..<firstSize] }

    /// Adds the keys to those of other indexes.
    func append(to keys: inout IndexKeys) {
      if bytes.integer(at: 40, as: UInt32.self) != 0 {
        keys.appendOverflowKey()
      } else {
        let multiFields = bytes.integer(at: 36, as: UInt32.self)
        keys.append(bytes.span.extracting(firstKey...), sizes: sizes, multiFields: multiFields)
      }
    }
  }
}
