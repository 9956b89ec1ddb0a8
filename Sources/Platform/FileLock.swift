import Glibc

/// A file that at most one process locks, with the id of that process in it unless the disk was full: `flock(2)`.
///
/// The lock is released when its owner's lifetime ends or the process ends, for whatever reason. The file stays,
/// because removing it would let two processes lock two files of the same name.
package struct FileLock: ~Copyable, Sendable {
  package enum Failure: Error, Equatable, Sendable {
    /// Another process has the lock: the one with this id, if it has written its id.
    case locked(by: Int32?)
    case failed(SystemError)
  }

  private let descriptor: Descriptor

  private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// Locks the file at a path. Doesn't follow a symbolic link.
  /// - Parameter creating: Whether to create the file if it doesn't exist.
  package static func acquire(_ path: String, creating: Bool = true) throws(Failure) -> FileLock {
    let number = open(path, O_RDWR | (creating ? O_CREAT : 0))
    guard number >= 0 else { throw .failed(SystemError("openat")) }
    let descriptor = Descriptor(owning: number)
    do throws(SystemError) { try lock(number) } catch {
      throw error.errno == EWOULDBLOCK ? .locked(by: owner(in: number)) : .failed(error)
    }
    // Only an error message uses the id: a full disk must not keep the owner from its work.
    var text = "\(getpid())\n"
    let written = text.withUTF8 { unsafe pwrite(number, $0.baseAddress, $0.count, 0) }
    _ = ftruncate(number, written == text.utf8.count ? written : 0)
    return FileLock(descriptor)
  }

  /// Locks a folder itself, so that nobody who removes a lock file in it opens the folder a second time. Changes
  /// nothing.
  /// - Parameter file: The lock file in the folder, which has the id of the process that has locked it.
  /// - Returns: Nil if the folder's file system can't lock folders, as network file systems can't.
  package static func acquire(folder: String, ownerIn file: String) throws(Failure) -> FileLock? {
    let number = open(folder, O_RDONLY | O_DIRECTORY)
    guard number >= 0 else { throw .failed(SystemError("openat")) }
    let descriptor = Descriptor(owning: number)
    do throws(SystemError) { try lock(number) } catch {
      guard error.errno == EWOULDBLOCK else { return nil }
      let number = open(file, O_RDONLY)
      guard number >= 0 else { throw .locked(by: nil) }
      let descriptor = Descriptor(owning: number)
      throw .locked(by: owner(in: descriptor.number))
    }
    return FileLock(descriptor)
  }

  private static func lock(_ number: Int32) throws(SystemError) {
    var result: Int32
    repeat { result = flock(number, LOCK_EX | LOCK_NB) } while result < 0 && errno == EINTR
    guard result == 0 else { throw SystemError("flock") }
  }

  private static func open(_ path: String, _ access: Int32) -> Int32 {
    let flags = access | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    while true {
      let number = unsafe openat(AT_FDCWD, path, flags, 0o600 as mode_t)
      if number >= 0 || errno != EINTR { return number }
    }
  }

  private static func owner(in number: Int32) -> Int32? {
    var text = [UInt8](repeating: 0, count: 16)
    let count = unsafe text.withUnsafeMutableBytes { unsafe pread(number, $0.baseAddress, $0.count, 0) }
    let digits = text.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }
    return Int32(String(decoding: digits, as: UTF8.self))
  }
}
