import CLinux
import Glibc

/// The file operations of durable stores. `LocalFileSystem` is the real implementation; tests use a disk that fails on
/// purpose.
///
/// Paths are absolute. A symbolic link in a path's last component is never followed. Implementations retry calls that a
/// signal interrupts.
package protocol FileSystem: Sendable {
  /// Opens a regular file, or creates it.
  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File

  /// Returns the names in a folder, without `.` and `..`, in no particular order. A name that isn't UTF-8 is repaired,
  /// and can't be opened then.
  func list(_ folder: String) throws(SystemError) -> [String]

  /// Returns the kind of the file at a path; nil if there is none.
  func kind(of path: String) throws(SystemError) -> FileKind?

  func createFolder(_ path: String) throws(SystemError)
  /// Renames a file, and replaces a file that has the new name already.
  func rename(_ path: String, to other: String) throws(SystemError)
  func remove(_ path: String) throws(SystemError)
  func removeFolder(_ path: String) throws(SystemError)

  /// Opens an existing folder, to sync it.
  func openFolder(_ path: String) throws(SystemError) -> any Folder
}

extension FileSystem {
  /// Makes the names in a folder durable: of new, renamed and removed files.
  package func syncFolder(_ path: String) throws(SystemError) { try openFolder(path).sync() }
}

package enum FileAccess: Sendable {
  /// Reads an existing file.
  case reading
  /// Reads and writes an existing file.
  case writing
  /// Creates a file that doesn't exist yet, to read and write it.
  case creating
}

package enum FileKind: Sendable, Equatable {
  case file(byteCount: Int)
  case folder
  /// A link, a socket, a device …
  case other
}

/// An open folder, which can be synced even if the process can't open any more files. It is closed with its last
/// reference.
package protocol Folder: AnyObject, Sendable {
  /// Makes the names in the folder durable: `fsync(2)`. The caller must not retry after a failure.
  func sync() throws(SystemError)
}

/// An open file. It is closed with its last reference.
package protocol File: AnyObject, Sendable {
  func byteCount() throws(SystemError) -> Int

  /// Reads until the buffer is full or the file ends.
  /// - Returns: The number of bytes read.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int

  /// Reads what is in memory, and does not wait for the disk.
  /// - Returns: The number of bytes read. It can be 0, even if all are in memory, where that can't be found out.
  func readFromCache(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int

  /// Writes all bytes.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError)

  /// Writes all bytes of two buffers, one directly after the other.
  func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int) throws(SystemError)

  /// Writes all bytes of two buffers, one directly after the other, and makes them and the file's size durable. Bytes
  /// that were written before and have not been synced may stay so. The caller must not retry after a failure.
  func writeDurably(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError)

  /// Extends the file with zeroes to at least this size, and allocates disk space for all of it: `fallocate(2)`.
  func allocate(_ byteCount: Int) throws(SystemError)

  func truncate(to byteCount: Int) throws(SystemError)

  /// Makes the file's bytes and size durable: `fdatasync(2)`. The caller must not retry after a failure.
  func sync() throws(SystemError)
}

extension File {
  package func readFromCache(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int { 0 }

  package func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) {
    unsafe try write(first, at: offset)
    unsafe try write(second, at: offset + first.count)
  }

  package func writeDurably(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) {
    unsafe try write(first, second, at: offset)
    try sync()
  }
}

// MARK: - Local files

/// The files of this machine. A value has no state.
package struct LocalFileSystem: FileSystem {
  /// The mode of a new file before the process's umask: only its owner has access.
  private static let fileMode: mode_t = 0o600
  private static let folderMode: mode_t = 0o700

  package init() {}

  package func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    // Without O_NONBLOCK, opening a pipe of this name would block. For a regular file the flag has no effect.
    var flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    switch access {
    case .reading: flags |= O_RDONLY
    case .writing: flags |= O_RDWR
    case .creating: flags |= O_RDWR | O_CREAT | O_EXCL
    }
    let descriptor = Descriptor(owning: try system("openat") { unsafe openat(AT_FDCWD, path, flags, Self.fileMode) })
    var status = stat()
    let number = descriptor.number
    try system("fstat") { unsafe fstat(number, &status) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw SystemError("openat", errno: EINVAL) }
    return LocalFile(descriptor)
  }

  package func list(_ folder: String) throws(SystemError) -> [String] {
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
    let number = try system("openat") { unsafe openat(AT_FDCWD, folder, flags) }
    guard let stream = unsafe fdopendir(number) else {
      let error = SystemError("fdopendir")
      _ = close(number)
      throw error
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      // Only errno distinguishes a failure from the end.
      errno = 0
      guard let entry = unsafe readdir(stream) else { break }
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { field in
        unsafe field.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    guard errno == 0 else { throw SystemError("readdir") }
    return names
  }

  package func kind(of path: String) throws(SystemError) -> FileKind? {
    var status = stat()
    do throws(SystemError) {
      try system("fstatat") { unsafe fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) }
    } catch {
      if error.errno == ENOENT { return nil }
      throw error
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return .file(byteCount: status.st_size)
    case S_IFDIR: return .folder
    default: return .other
    }
  }

  package func createFolder(_ path: String) throws(SystemError) {
    try system("mkdirat") { unsafe mkdirat(AT_FDCWD, path, Self.folderMode) }
  }

  /// Returns the permissions of a file or folder, such as 0o700.
  package func permissions(of path: String) throws(SystemError) -> UInt32 {
    var status = stat()
    try system("fstatat") { unsafe fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) }
    return status.st_mode & 0o777
  }

  package func setPermissions(of path: String, to permissions: UInt32) throws(SystemError) {
    try system("fchmodat") { unsafe fchmodat(AT_FDCWD, path, permissions, 0) }
  }

  package func rename(_ path: String, to other: String) throws(SystemError) {
    try system("renameat") { unsafe renameat(AT_FDCWD, path, AT_FDCWD, other) }
  }

  package func remove(_ path: String) throws(SystemError) {
    try system("unlinkat") { unsafe unlinkat(AT_FDCWD, path, 0) }
  }

  package func removeFolder(_ path: String) throws(SystemError) {
    try system("unlinkat") { unsafe unlinkat(AT_FDCWD, path, AT_REMOVEDIR) }
  }

  package func openFolder(_ path: String) throws(SystemError) -> any Folder {
    let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
    return LocalFolder(Descriptor(owning: try system("openat") { unsafe openat(AT_FDCWD, path, flags) }))
  }
}

private final class LocalFolder: Folder {
  private let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  func sync() throws(SystemError) {
    let number = descriptor.number
    // Only a call that a signal interrupts may be retried.
    try system("fsync") { fsync(number) }
  }
}

/// An open file. Every call names its offset, so that several threads may use the file.
private final class LocalFile: File {
  private let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  func byteCount() throws(SystemError) -> Int {
    var status = stat()
    let number = descriptor.number
    try system("fstat") { unsafe fstat(number, &status) }
    return status.st_size
  }

  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    let number = descriptor.number
    var done = 0
    while done < buffer.count {
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let transfer = Transfer.of("pread") { unsafe pread(number, rest.baseAddress, rest.count, offset + done) }
      let moved = try transfer.bytes("pread")
      if moved == 0 { break }
      done += moved
    }
    return done
  }

  func readFromCache(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    // Whatever fails here fails again when the disk is read.
    max(0, unsafe pread_from_cache(descriptor.number, buffer.baseAddress, buffer.count, offset))
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
    let number = descriptor.number
    var done = 0
    while done < bytes.count {
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[done...])
      let transfer = Transfer.of("pwrite") { unsafe pwrite(number, rest.baseAddress, rest.count, offset + done) }
      done += try transfer.bytes("pwrite")
    }
  }

  func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
    unsafe try write(first, second, at: offset, isDurable: false)
  }

  func writeDurably(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(SystemError) {
    unsafe try write(first, second, at: offset, isDurable: true)
  }

  private func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int, isDurable: Bool
  ) throws(SystemError) {
    let number = descriptor.number
    var done = 0
    while done < first.count + second.count {
      let rest = unsafe UnsafeRawBufferPointer(rebasing: first[min(done, first.count)...])
      let others = unsafe UnsafeRawBufferPointer(rebasing: second[max(0, done - first.count)...])
      // One call instead of two times pwrite and fdatasync.
      let transfer = Transfer.of("pwritev2") {
        unsafe pwrite_two(
          number, rest.baseAddress, rest.count, others.baseAddress, others.count, offset + done, isDurable)
      }
      done += try transfer.bytes("pwritev2")
    }
  }

  func allocate(_ byteCount: Int) throws(SystemError) {
    let number = descriptor.number
    // If the file system can't allocate space, the library writes to every block instead. It returns its error code.
    var code: Int32
    repeat { code = posix_fallocate(number, 0, byteCount) } while code == EINTR
    guard code == 0 else { throw SystemError("fallocate", errno: code) }
  }

  func truncate(to byteCount: Int) throws(SystemError) {
    let number = descriptor.number
    try system("ftruncate") { ftruncate(number, byteCount) }
  }

  func sync() throws(SystemError) {
    let number = descriptor.number
    guard fdatasync(number) == 0 else { throw SystemError("fdatasync") }
  }
}

extension Transfer {
  /// The number of bytes that a call on a file moved. Calls on files never block in this sense.
  fileprivate func bytes(_ call: StaticString) throws(SystemError) -> Int {
    switch self {
    case .moved(let count): return count
    case .wouldBlock: throw SystemError(call.description, errno: EAGAIN)
    case .failed(let error): throw error
    }
  }
}
