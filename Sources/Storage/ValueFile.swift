import Platform

/// What separated values are read from: a file of their store, or what has its commits elsewhere.
package protocol ValueSource: AnyObject, Sendable {
  /// What a message calls it.
  var path: String { get }

  /// Reads until the buffer is full or the source ends. May wait.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) -> Int

  /// Reads what is in memory, and does not wait.
  /// - Returns: The number of bytes read. It can be 0, even if all are in memory, where that can't be found out.
  func readFromCache(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int

  /// Reads bytes so that they are in memory afterward. What fails here fails again for those who need them. May wait.
  func readAhead(at offset: Int, byteCount: Int)
}

/// A value source that separated values refer to, and the checksums of what was verified of it.
final class ValueFile: Sendable {
  let source: any ValueSource
  /// The value that it consists of, if it is in a commit.
  let reference: ValueReference?
  /// Slices of the values that were verified last, the latest one at the end.
  private let verified = Lock<[VerifiedSlices]>([])

  /// The maximum number of values whose slices are kept.
  private static let maxVerifiedCount = 16

  init(_ source: any ValueSource, reference: ValueReference? = nil) {
    (self.source, self.reference) = (source, reference)
  }

  convenience init(_ file: any File, path: String) { self.init(OpenValueFile(file, path: path)) }

  var path: String { source.path }

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
}

/// A file with separated values. It stays open, and so readable after its name is gone, as long as anything refers to a
/// value in it.
///
/// It is closed on a thread of its own. The last reference is often dropped under a store's lock, and closing a file
/// whose name is gone frees its space, which takes the disk some time. Dispatch would not do: a compaction drops such
/// references, too, and a thread that Dispatch started there would inherit its niceness.
private final class OpenValueFile: ValueSource {
  private static let closer = BlockingThreads(maxCount: 1)
  /// The size of the pieces in which a value is read ahead.
  private static let pieceByteCount = 256 << 10

  private let file: any File
  let path: String

  init(_ file: any File, path: String) { (self.file, self.path) = (file, path) }

  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SeparatedValueError) -> Int {
    do throws(SystemError) { return unsafe try file.read(at: offset, into: buffer) } catch {
      throw .failed(path: path, error)
    }
  }

  func readFromCache(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    unsafe file.readFromCache(at: offset, into: buffer)
  }

  func readAhead(at offset: Int, byteCount: Int) {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: min(byteCount, Self.pieceByteCount), alignment: 1)
    defer { unsafe room.deallocate() }
    var done = 0
    while done < byteCount {
      let piece = unsafe UnsafeMutableRawBufferPointer(rebasing: room.prefix(byteCount - done))
      guard let count = unsafe try? file.read(at: offset + done, into: piece), count > 0 else { return }
      done += count
    }
  }

  deinit { Task.detached(executorPreference: Self.closer) { [file] in withExtendedLifetime(file) {} } }
}

// MARK: Values in commits

/// Which separated value of a store, by the commit that it was written in. It stays the same wherever the value is moved.
package struct ValueReference: Hashable, Sendable {
  package static let byteCount = 16

  /// The position of the commit.
  package let position: Int64
  /// The offset of the value in the records of the commit.
  package let offset: Int

  package init(position: Int64, offset: Int) { (self.position, self.offset) = (position, offset) }
}

/// The separated values of a store whose commits are kept outside of the process, such as in a database.
package protocol ValuesInCommits: AnyObject, Sendable {
  /// Returns what a value is read from. It ends with the value.
  func source(of value: ValueReference, byteCount: Int) -> any ValueSource
}

extension SeparatedValue {
  init(_ reference: ValueReference, byteCount: Int, checksum: UInt32, in values: any ValuesInCommits) {
    let file = ValueFile(values.source(of: reference, byteCount: byteCount), reference: reference)
    self.init(file: file, offset: 0, byteCount: byteCount, checksum: checksum)
  }

  /// Where the value is, if it is in a commit.
  package var reference: ValueReference? { file.reference }
}
