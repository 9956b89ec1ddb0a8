import Platform
import Synchronization

/// The local file system, which counts reads, and whose disk can be full. A full disk can't allocate space for files.
final class ObservedFiles: FileSystem {
  private let files = LocalFileSystem()
  private let readCount = Atomic(0)
  private let readByteCount = Atomic(0)
  private let readCountsBySize = Lock<[Int: Int]>([:])
  private let diskIsFull = Atomic(false)

  /// The number of reads so far.
  var reads: Int { readCount.load(ordering: .relaxed) }
  var bytesRead: Int { readByteCount.load(ordering: .relaxed) }

  /// Returns the number of reads so far that returned this many bytes.
  func reads(ofByteCount byteCount: Int) -> Int { readCountsBySize.withLock { $0[byteCount] ?? 0 } }

  /// Makes allocations fail or succeed from now on.
  func setFull(_ isFull: Bool) { diskIsFull.store(isFull, ordering: .relaxed) }

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    ObservedFile(try files.open(path, access), self)
  }

  func list(_ folder: String) throws(SystemError) -> [String] { try files.list(folder) }
  func kind(of path: String) throws(SystemError) -> FileKind? { try files.kind(of: path) }
  func createFolder(_ path: String) throws(SystemError) { try files.createFolder(path) }
  func rename(_ path: String, to other: String) throws(SystemError) { try files.rename(path, to: other) }
  func remove(_ path: String) throws(SystemError) { try files.remove(path) }
  func removeFolder(_ path: String) throws(SystemError) { try files.removeFolder(path) }
  func openFolder(_ path: String) throws(SystemError) -> any Folder { try files.openFolder(path) }

  private final class ObservedFile: File {
    private let file: any File
    private let files: ObservedFiles

    init(_ file: any File, _ files: ObservedFiles) {
      self.file = file
      self.files = files
    }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
      let count = unsafe try file.read(at: offset, into: buffer)
      files.readCount.add(1, ordering: .relaxed)
      files.readByteCount.add(count, ordering: .relaxed)
      files.readCountsBySize.withLock { $0[count, default: 0] += 1 }
      return count
    }

    func allocate(_ byteCount: Int) throws(SystemError) {
      if files.diskIsFull.load(ordering: .relaxed) { throw SystemError("fallocate", errno: 28) }
      try file.allocate(byteCount)
    }

    func byteCount() throws(SystemError) -> Int { try file.byteCount() }
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
      unsafe try file.write(bytes, at: offset)
    }
    func truncate(to byteCount: Int) throws(SystemError) { try file.truncate(to: byteCount) }
    func sync() throws(SystemError) { try file.sync() }
  }
}
