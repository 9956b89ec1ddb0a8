import Platform
import Storage
import Synchronization

/// The values of 32 KiB and more of a store, which are in its log. They are read on demand, and some are kept in memory.
final class StoreValues: ValuesInCommits {
  private let log: any SharedLog
  private let store: StoreID
  private let name: StoreName
  private let cache: ValueCache
  /// The values that anything in this process refers to: their sizes, and how many sources of each there are.
  private let used = Lock<[ValueReference: (byteCount: Int, sourceCount: Int)]>([:])
  private let reads = Atomic(0)

  init(of store: StoreID, _ name: StoreName, in log: any SharedLog, keptIn cache: ValueCache) {
    (self.store, self.name, self.log, self.cache) = (store, name, log, cache)
  }

  /// How many times the log was read.
  var readCount: Int { reads.load(ordering: .relaxed) }

  func source(of value: ValueReference, byteCount: Int) -> any ValueSource {
    used.withLock { $0[value, default: (byteCount, 0)].sourceCount += 1 }
    return SharedValue(value, byteCount, of: self)
  }

  private func release(_ value: ValueReference) {
    used.withLock { used in
      guard let (byteCount, count) = used[value] else { return }
      used[value] = count > 1 ? (byteCount, count - 1) : nil
    }
  }

  /// The values that may still be read here.
  var usedValues: [ValueReference: LogValue] {
    used.withLock { used in
      Dictionary(
        uniqueKeysWithValues: used.map { ($0.key, LogValue(reference: $0.key, byteCount: $0.value.byteCount)) })
    }
  }

  /// Keeps those of a commit's values in memory that are probably read next.
  func keep(_ locations: [ValueLocation], in records: [UInt8]) {
    for location in locations {
      let (value, byteCount) = (location.value, location.value.byteCount)
      guard let reference = value.reference, cache.hasRoom(for: byteCount) else { continue }
      cache.keep(Array(records[reference.offset..<reference.offset + byteCount]), as: reference, of: store)
    }
  }

  /// Reads a part of a value.
  private func read(_ value: ValueReference, _ range: Range<Int>) throws(SeparatedValueError) -> [UInt8] {
    reads.wrappingAdd(1, ordering: .relaxed)
    let bytes: [UInt8]
    do throws(SharedLogError) { bytes = try log.bytes(range, of: value, in: store) } catch {
      throw .unavailable("\(error)")
    }
    guard bytes.count == range.count else {
      throw .unavailable("the database no longer has it; it was replaced or deleted meanwhile")
    }
    return bytes
  }

  /// A value, as its readers see it.
  private final class SharedValue: ValueSource {
    private let value: ValueReference
    private let byteCount: Int
    private let values: StoreValues

    init(_ value: ValueReference, _ byteCount: Int, of values: StoreValues) {
      (self.value, self.byteCount, self.values) = (value, byteCount, values)
    }

    deinit { values.release(value) }

    var path: String { "commit \(value.position) of the store \(values.name)" }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) -> Int {
      if let bytes = values.cache.bytes(of: value, of: values.store) {
        return unsafe Self.copy(bytes, from: offset, into: buffer)
      }
      guard values.cache.hasRoom(for: byteCount) else {
        let bytes = try values.read(value, offset..<min(byteCount, offset + buffer.count))
        return unsafe Self.copy(bytes, from: 0, into: buffer)
      }
      return unsafe Self.copy(try load(), from: offset, into: buffer)
    }

    /// Reads all of the value, and keeps it in memory.
    private func load() throws(SeparatedValueError) -> [UInt8] {
      let bytes = try values.read(value, 0..<byteCount)
      values.cache.keep(bytes, as: value, of: values.store)
      return bytes
    }

    func readFromCache(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
      guard let bytes = values.cache.bytes(of: value, of: values.store) else { return 0 }
      return unsafe Self.copy(bytes, from: offset, into: buffer)
    }

    func readAhead(at offset: Int, byteCount: Int) {
      if values.cache.bytes(of: value, of: values.store) == nil { _ = try? load() }
    }

    private static func copy(_ bytes: [UInt8], from offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
      let count = max(0, min(buffer.count, bytes.count - offset))
      unsafe bytes.withUnsafeBytes { bytes in
        unsafe buffer.copyMemory(
          from: UnsafeRawBufferPointer(rebasing: bytes[min(offset, bytes.count)...].prefix(count)))
      }
      return count
    }
  }
}
