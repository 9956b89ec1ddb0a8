import Platform
import Synchronization

/// The files of this machine on a disk that can be full: then it can't allocate space for a file.
final class FullDisk: FileSystem {
  private let files = LocalFileSystem()
  let isFull = Atomic<Bool>(false)

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    FullDiskFile(try files.open(path, access), self)
  }

  func list(_ folder: String) throws(SystemError) -> [String] { try files.list(folder) }
  func kind(of path: String) throws(SystemError) -> FileKind? { try files.kind(of: path) }
  func createFolder(_ path: String) throws(SystemError) { try files.createFolder(path) }
  func rename(_ path: String, to other: String) throws(SystemError) { try files.rename(path, to: other) }
  func remove(_ path: String) throws(SystemError) { try files.remove(path) }
  func removeFolder(_ path: String) throws(SystemError) { try files.removeFolder(path) }
  func openFolder(_ path: String) throws(SystemError) -> any Folder { try files.openFolder(path) }
}

private final class FullDiskFile: File {
  private let file: any File
  private let disk: FullDisk

  init(_ file: any File, _ disk: FullDisk) {
    self.file = file
    self.disk = disk
  }

  func allocate(_ byteCount: Int) throws(SystemError) {
    if disk.isFull.load(ordering: .relaxed) { throw SystemError("fallocate", errno: 28) }
    try file.allocate(byteCount)
  }

  func read(at offset: Int, into room: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    unsafe try file.read(at: offset, into: room)
  }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
    unsafe try file.write(bytes, at: offset)
  }
  func byteCount() throws(SystemError) -> Int { try file.byteCount() }
  func truncate(to byteCount: Int) throws(SystemError) { try file.truncate(to: byteCount) }
  func sync() throws(SystemError) { try file.sync() }
}
