import Glibc
import Platform

/// The files of this machine until so many calls have changed something; from then on every such call fails, as if the process were no
/// more. A cut-off write leaves half of its bytes.
final class CrashingFileSystem: FileSystem {
  private let real = LocalFileSystem()
  private let left: Lock<Int>
  private let isFull = Lock(false)
  private let used = Lock(0)

  /// The call of that number, from 1, is the first to fail.
  init(after calls: Int) { left = Lock(calls) }

  /// How many calls have changed something, or tried to.
  var calls: Int { used.withLock { $0 } }

  /// From now on there is no space for new files.
  func fill() { isFull.withLock { $0 = true } }

  /// There is space again.
  func recover() { isFull.withLock { $0 = false } }

  fileprivate func change(_ call: String) throws(SystemError) {
    used.withLock { $0 += 1 }
    let crashes = left.withLock { left in
      if left > 0 { left -= 1 }
      return left == 0
    }
    if crashes { throw SystemError(call, errno: EIO) }
  }

  fileprivate func needSpace(_ call: String) throws(SystemError) {
    if isFull.withLock({ $0 }) { throw SystemError(call, errno: ENOSPC) }
  }

  func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    if access == .making {
      try change("openat")
      try needSpace("openat")
    }
    return CrashingFile(try real.open(path, access), self)
  }

  func list(_ folder: String) throws(SystemError) -> [String] { try real.list(folder) }
  func kind(of path: String) throws(SystemError) -> FileKind? { try real.kind(of: path) }

  func makeFolder(_ path: String) throws(SystemError) {
    try change("mkdirat")
    try real.makeFolder(path)
  }

  func rename(_ path: String, to other: String) throws(SystemError) {
    try change("renameat")
    try real.rename(path, to: other)
  }

  func remove(_ path: String) throws(SystemError) {
    try change("unlinkat")
    try real.remove(path)
  }

  func removeFolder(_ path: String) throws(SystemError) {
    try change("unlinkat")
    try real.removeFolder(path)
  }

  func syncFolder(_ path: String) throws(SystemError) { try change("fsync") }
}

private final class CrashingFile: File {
  private let real: any File
  private let system: CrashingFileSystem

  init(_ real: any File, _ system: CrashingFileSystem) {
    self.real = real
    self.system = system
  }

  func byteCount() throws(SystemError) -> Int { try real.byteCount() }

  func read(at offset: Int, into room: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    unsafe try real.read(at: offset, into: room)
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
    do throws(SystemError) { try system.change("pwrite") } catch {
      unsafe try real.write(UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count / 2)]), at: offset)
      throw error
    }
    unsafe try real.write(bytes, at: offset)
  }

  func allocate(_ byteCount: Int) throws(SystemError) {
    try system.change("fallocate")
    try system.needSpace("fallocate")
    try real.allocate(byteCount)
  }

  func truncate(to byteCount: Int) throws(SystemError) {
    try system.change("ftruncate")
    try real.truncate(to: byteCount)
  }

  func sync() throws(SystemError) { try system.change("fdatasync") }
}
