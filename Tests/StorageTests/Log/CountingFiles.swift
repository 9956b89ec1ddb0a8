import Platform
import Synchronization

/// The local file system, with counts of reads.
final class CountingFiles: FileSystem {
  private let files = LocalFileSystem()
  let reads = Atomic<Int>(0)
  let bytesRead = Atomic<Int>(0)

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    CountingFile(try files.open(path, access), self)
  }

  func list(_ folder: String) throws(SystemError) -> [String] { try files.list(folder) }
  func kind(of path: String) throws(SystemError) -> FileKind? { try files.kind(of: path) }
  func createFolder(_ path: String) throws(SystemError) { try files.createFolder(path) }
  func rename(_ path: String, to other: String) throws(SystemError) { try files.rename(path, to: other) }
  func remove(_ path: String) throws(SystemError) { try files.remove(path) }
  func removeFolder(_ path: String) throws(SystemError) { try files.removeFolder(path) }
  func openFolder(_ path: String) throws(SystemError) -> any Folder { try files.openFolder(path) }
}

private final class CountingFile: File {
  private let file: any File
  private let counts: CountingFiles

  init(_ file: any File, _ counts: CountingFiles) {
    self.file = file
    self.counts = counts
  }

  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    let count = unsafe try file.read(at: offset, into: buffer)
    counts.reads.add(1, ordering: .relaxed)
    counts.bytesRead.add(count, ordering: .relaxed)
    return count
  }

  func byteCount() throws(SystemError) -> Int { try file.byteCount() }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
    unsafe try file.write(bytes, at: offset)
  }
  func allocate(_ byteCount: Int) throws(SystemError) { try file.allocate(byteCount) }
  func truncate(to byteCount: Int) throws(SystemError) { try file.truncate(to: byteCount) }
  func sync() throws(SystemError) { try file.sync() }
}
