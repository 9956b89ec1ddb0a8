import Glibc

/// The files of this machine.
///
/// It holds nothing: a value of it is a name for the calls.
package struct LocalFileSystem: FileSystem {
  /// What a new file is made with, before the process's mask: its owner's business alone.
  private static let fileMode: mode_t = 0o600
  private static let folderMode: mode_t = 0o700

  package init() {}

  package func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    // Without O_NONBLOCK a pipe of that name would hold the caller up; to a regular file it means nothing.
    var flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    switch access {
    case .reading: flags |= O_RDONLY
    case .writing: flags |= O_RDWR
    case .making: flags |= O_RDWR | O_CREAT | O_EXCL
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
      // The end and a failure look alike but for errno.
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

  package func makeFolder(_ path: String) throws(SystemError) {
    try system("mkdirat") { unsafe mkdirat(AT_FDCWD, path, Self.folderMode) }
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
    // A failure must not be met with another try, but for a signal's.
    try system("fsync") { fsync(number) }
  }
}

/// A file that is open. Its calls name a place each, so several threads may use it.
private final class LocalFile: File {
  private let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  func byteCount() throws(SystemError) -> Int {
    var status = stat()
    let number = descriptor.number
    try system("fstat") { unsafe fstat(number, &status) }
    return status.st_size
  }

  func read(at offset: Int, into room: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    let number = descriptor.number
    var done = 0
    while done < room.count {
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: room[done...])
      let transfer = Transfer.of("pread") { unsafe pread(number, rest.baseAddress, rest.count, offset + done) }
      let moved = try transfer.bytes("pread")
      if moved == 0 { break }
      done += moved
    }
    return done
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

  func allocate(_ byteCount: Int) throws(SystemError) {
    let number = descriptor.number
    // Where the file system can't take space ahead, the library writes to every block instead. It returns its error.
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
  /// How many bytes a call on a file moved; files never have a caller wait.
  fileprivate func bytes(_ call: StaticString) throws(SystemError) -> Int {
    switch self {
    case .moved(let count): return count
    case .wouldBlock: throw SystemError(call.description, errno: EAGAIN)
    case .failed(let error): throw error
    }
  }
}
