import Glibc
import Platform
import Storage
import Wire

/// Writes that take too long for the store's lock: they become jobs, whose connections pause.
extension Executor {
  /// The maximum number of entries, the size, and the number of keys in indexes of a write under the store's lock.
  private static let maxEntryCount = 1_024
  private static let maxByteCount = 1 << 20
  private static let maxIndexKeyCount = 2_048

  /// Whether a write takes so long that it is left to a job.
  mutating func isLarge(count: Int, _ body: RawSpan, of operation: Operation, _ map: inout EntryMap) -> Bool {
    if count > Self.maxEntryCount || body.byteCount > Self.maxByteCount { return count > 0 }
    let keyCount =
      operation == .deleteMany
      ? map.indexKeyCount(ofDeletes: count)
      : map.indexKeyCount(ofPuts: count) { Self.arrayElementCount(in: body) }
    return keyCount > Self.maxIndexKeyCount
  }

  /// Returns the number of commas in arrays, which is about that of their elements.
  private static func arrayElementCount(in body: RawSpan) -> Int {
    unsafe body.withUnsafeBytes { bytes in
      var (count, offset) = (0, 0)
      while let start = unsafe bytes[offset...].firstIndexOfByte(UInt8(ascii: "[")) {
        let end = unsafe bytes[start...].firstIndexOfByte(UInt8(ascii: "]")) ?? bytes.count
        for index in start..<end where unsafe bytes[index] == UInt8(ascii: ",") { count += 1 }
        offset = end
      }
      return count
    }
  }

  /// Returns what has become of a write that a job has made.
  mutating func execution(of job: WriteJob) throws(Detour) -> Execution {
    switch job.ending {
    case .number(let number, let revision): return Execution(.number(number), revealing: revision)
    case .failure(let code, let reason, let revision): throw .failure(code, reason, revealing: revision)
    case .needsSpace: throw .needsSpace
    case .needsUpdates: throw .needsDocumentJob
    case nil: preconditionFailure("a job that has ended has an outcome")
    }
  }
}

extension Slice<UnsafeRawBufferPointer> {
  /// Returns the index of the first byte with this value.
  fileprivate func firstIndexOfByte(_ byte: UInt8) -> Int? {
    guard let start = unsafe base.baseAddress, unsafe !isEmpty,
      let found = unsafe memchr(start + startIndex, Int32(byte), endIndex - startIndex)
    else { return nil }
    return unsafe UnsafeRawPointer(found) - start
  }
}
