import Platform

/// A reference to a value in a file of its store, or to a part of it, with what distinguishes the value from any other
/// bytes there.
///
/// It can be read without the store's lock, and for as long as it exists, even if the entry has changed meanwhile.
package struct SeparatedValue: Sendable {
  let file: ValueFile
  /// Where the whole value begins in the file.
  let offset: Int
  /// The number of bytes that a read returns.
  package let byteCount: Int
  /// The CRC32C of the whole value.
  let checksum: UInt32
  /// The part of the value; nil for the whole value.
  var part: ValuePart?

  /// Reads the value into a buffer of its size, and waits for the disk if necessary.
  /// - Throws: If the value can't be read, or is not what was written. The contents of the buffer are then undefined.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) {
    precondition(buffer.count == byteCount)
    if let part {
      _ = unsafe try read(part, into: buffer) { (offset, room) throws(SeparatedValueError) in
        unsafe try readAll(at: offset, into: room)
        return true
      }
    } else {
      unsafe try readAll(at: offset, into: buffer)
      unsafe try check(buffer)
    }
  }

  private func readAll(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) {
    let count: Int
    do throws(SystemError) {
      count = unsafe try file.file.read(at: offset, into: buffer)
    } catch {
      throw .failed(path: file.path, error)
    }
    guard count == buffer.count else { throw .damaged(path: file.path, offset: self.offset) }
  }

  /// Reads the value into a buffer of its size if that doesn't have to wait for the disk, or for the verification of a
  /// much larger value.
  /// - Returns: Whether it was read. The contents of the buffer are undefined if not.
  /// - Throws: `damaged` if it is not what was written.
  package func readFromCache(into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) -> Bool {
    precondition(buffer.count == byteCount)
    if let part {
      guard
        part.valueByteCount <= Self.maxQuicklyVerifiedByteCount || file.verifiedSlices(ofValueAt: offset) != nil
      else { return false }
      return unsafe try read(part, into: buffer) { (offset, room) throws(SeparatedValueError) in
        unsafe file.file.readFromCache(at: offset, into: room) == room.count
      }
    }
    guard unsafe file.file.readFromCache(at: offset, into: buffer) == byteCount else { return false }
    unsafe try check(buffer)
    return true
  }

  /// Whether the value can probably be read without waiting for the disk: its first and last bytes can.
  package var isProbablyCached: Bool {
    var byte: UInt8 = 0
    return unsafe withUnsafeMutableBytes(of: &byte) { byte in
      unsafe file.file.readFromCache(at: offset, into: byte) == 1
        && file.file.readFromCache(at: offset + byteCount - 1, into: byte) == 1
    }
  }

  /// Reads the value in pieces, so that it is in memory afterward. Waits for the disk.
  package func readAhead() {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: min(byteCount, 256 << 10), alignment: 1)
    defer { unsafe room.deallocate() }
    var done = 0
    while done < byteCount {
      // What fails here fails again for those who need the value.
      let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: room.prefix(byteCount - done))
      guard let count = unsafe try? file.file.read(at: offset + done, into: piece), count > 0 else { return }
      done += count
    }
  }

  private func check(_ buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) {
    guard unsafe UnsafeRawBufferPointer(buffer).checksum() == checksum else {
      throw .damaged(path: file.path, offset: offset)
    }
  }
}

/// A file with separated values. It stays open, and so readable after its name is gone, as long as anything refers to a
/// value in it.
///
/// It is closed on a thread of its own. The last reference is often dropped under a store's lock, and closing a file
/// whose name is gone frees its space, which takes the disk some time. Dispatch would not do: a compaction drops such
/// references, too, and a thread that Dispatch started there would inherit its niceness.
final class ValueFile: Sendable {
  private static let closer = BlockingThreads(maxCount: 1)

  let file: any File
  let path: String
  /// Slices of the values that were verified last, the latest one at the end.
  private let verified = Lock<[VerifiedSlices]>([])

  /// The maximum number of values whose slices are kept.
  private static let maxVerifiedCount = 16

  init(_ file: any File, path: String) {
    self.file = file
    self.path = path
  }

  func verifiedSlices(ofValueAt offset: Int) -> VerifiedSlices? {
    verified.withLock { verified in verified.last { $0.offset == offset } }
  }

  func add(_ slices: VerifiedSlices) {
    verified.withLock { verified in
      verified.removeAll { $0.offset == slices.offset }
      if verified.count == Self.maxVerifiedCount { verified.removeFirst() }
      verified.append(slices)
    }
  }

  deinit { Task.detached(executorPreference: Self.closer) { [file] in withExtendedLifetime(file) {} } }
}

/// The location of the separated value that a put of this key and revision has written.
package struct ValueLocation: Sendable {
  let key: [UInt8]
  let revision: UInt64
  let value: SeparatedValue
}

extension ValueLocation {
  /// Returns the locations of all separated values of records that were written at that offset of a file.
  static func all(in records: UnsafeRawBufferPointer, at offset: Int, of file: ValueFile) -> [ValueLocation] {
    var locations: [ValueLocation] = []
    let chunk = unsafe SegmentChunk(bytes: records, offset: offset, frameEnd: .max, isSparse: false)
    chunk.visit { operation, revision, valueOffset in
      guard operation.isSeparated else { return }
      let value = SeparatedValue(
        file: file, offset: valueOffset, byteCount: operation.valueByteCount, checksum: operation.valueChecksum)
      unsafe locations.append(ValueLocation(key: Array(operation.key), revision: revision, value: value))
    }
    return locations
  }
}

/// Why a separated value can't be read.
package enum SeparatedValueError: Error, Equatable, Sendable {
  /// The bytes in the file are not what was written.
  case damaged(path: String, offset: Int)
  case failed(path: String, SystemError)
}

extension SeparatedValueError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .damaged(let path, let offset):
      "the value in \(path) at byte \(offset) is damaged; run \"larder check\" to see what is intact"
    case .failed(let path, let error): "can't read the value: \(error) (\(path))"
    }
  }
}
