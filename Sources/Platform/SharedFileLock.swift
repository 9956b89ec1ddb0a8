import Glibc

/// A file that any number of processes lock to read or, one at a time, to write: `flock(2)`. It is small, and its
/// contents belong to those who lock it.
///
/// The lock is released together with the object.
package final class SharedFileLock: Sendable {
  private let descriptor: Descriptor

  package enum Access: Sendable {
    /// Reads an existing file.
    case reading
    /// Reads and writes an existing file.
    case writing
    /// Reads and writes a file, and creates it, for its owner only, if it doesn't exist.
    case creating
  }

  /// Opens the file at a path. Doesn't follow a symbolic link.
  package init(_ path: String, _ access: Access) throws(SystemError) {
    let mode: Int32 =
      switch access {
      case .reading: O_RDONLY
      case .writing: O_RDWR
      case .creating: O_RDWR | O_CREAT
      }
    let flags = Self.flags | mode
    descriptor = Descriptor(owning: try system("openat") { unsafe openat(AT_FDCWD, path, flags, 0o600 as mode_t) })
  }

  // Without O_NONBLOCK, opening a pipe of this name would block.
  private static let flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK

  /// Locks the file, or changes the lock that this object holds, which may release it in between. Doesn't wait.
  /// - Returns: Whether the object has the lock; false if another one excludes it.
  package func tryLock(exclusive: Bool) throws(SystemError) -> Bool {
    let (number, operation) = (descriptor.number, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)
    do throws(SystemError) {
      try system("flock") { flock(number, operation) }
      return true
    } catch {
      if error.errno == EWOULDBLOCK { return false }
      throw error
    }
  }

  /// Returns the first 64 bytes of the file.
  package func contents() throws(SystemError) -> [UInt8] {
    let number = descriptor.number
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = try system("pread") {
      unsafe bytes.withUnsafeMutableBytes { Int32(unsafe pread(number, $0.baseAddress, $0.count, 0)) }
    }
    return Array(bytes.prefix(Int(count)))
  }

  /// Replaces the contents of the file. Doesn't sync it.
  package func write(_ bytes: [UInt8]) throws(SystemError) {
    let number = descriptor.number
    try system("ftruncate") { ftruncate(number, 0) }
    let count = try system("pwrite") {
      unsafe bytes.withUnsafeBytes { Int32(unsafe pwrite(number, $0.baseAddress, $0.count, 0)) }
    }
    guard count == bytes.count else { throw SystemError("pwrite", errno: ENOSPC) }
  }
}

/// The state of a folder's list of names. It differs after every change, except between changes in the same tick of the
/// system's clock.
package struct FolderVersion: Hashable, Sendable {
  private let inode: UInt64
  private let seconds: Int
  private let nanoseconds: Int

  package init(of path: String) throws(SystemError) {
    var status = stat()
    try system("stat") { unsafe stat(path, &status) }
    inode = UInt64(status.st_ino)
    seconds = Int(status.st_mtim.tv_sec)
    nanoseconds = Int(status.st_mtim.tv_nsec)
  }
}
