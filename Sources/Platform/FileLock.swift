import Glibc

/// A file that at most one process has locked, with that process's id written inside: `flock(2)`.
///
/// The lock is given back when its owner lets go of it or the process ends, however it ends. The file stays, since removing it would let
/// two processes hold two files of one name.
package struct FileLock: ~Copyable, Sendable {
  package enum Refusal: Error, Equatable, Sendable {
    /// Another has it: the process of that id, if it has written it yet.
    case held(by: Int32?)
    case failed(SystemError)
  }

  private let descriptor: Descriptor

  private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// Locks the file of that path; a link is not followed.
  /// - Parameter making: whether the file is made if it isn't there.
  package static func take(_ path: String, making: Bool = true) throws(Refusal) -> FileLock {
    let number = open(path, making ? O_CREAT : 0)
    guard number >= 0 else { throw .failed(SystemError("openat")) }
    let descriptor = Descriptor(owning: number)
    var result: Int32
    repeat { result = flock(number, LOCK_EX | LOCK_NB) } while result < 0 && errno == EINTR
    guard result == 0 else {
      let error = SystemError("flock")
      throw error.errno == EWOULDBLOCK ? .held(by: owner(in: number)) : .failed(error)
    }
    var text = "\(getpid())\n"
    guard ftruncate(number, 0) == 0 else { throw .failed(SystemError("ftruncate")) }
    let written = text.withUTF8 { unsafe pwrite(number, $0.baseAddress, $0.count, 0) }
    guard written == text.utf8.count else { throw .failed(SystemError("pwrite")) }
    return FileLock(descriptor)
  }

  private static func open(_ path: String, _ making: Int32) -> Int32 {
    let flags = O_RDWR | making | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
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
