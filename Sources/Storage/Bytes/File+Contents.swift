import Glibc
import Platform

extension File {
  /// All bytes of the file, as many as it has when this begins.
  func contents() throws(SystemError) -> [UInt8] { try bytes(at: 0, count: byteCount()) }

  /// So many bytes, or fewer where the file ends.
  func bytes(at offset: Int, count: Int) throws(SystemError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var room = bytes.mutableSpan
    let moved = unsafe try room.withUnsafeMutableBytes { (room) throws(SystemError) in
      unsafe try read(at: offset, into: room)
    }
    bytes.removeLast(count - moved)
    return bytes
  }

  func write(_ bytes: [UInt8], at offset: Int) throws(SystemError) {
    unsafe try bytes.withBytes { (bytes) throws(SystemError) in unsafe try write(bytes, at: offset) }
  }
}

extension FileSystem {
  /// Makes a file of those bytes that is there whole after a crash, or not at all, once its folder is synced. What has the name already
  /// is replaced.
  /// - Parameter temporary: a path in the same folder; what a crash has left there is removed.
  func makeFile(_ path: String, through temporary: String, _ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    if try kind(of: temporary) != nil { try remove(temporary) }
    let file = try open(temporary, .making)
    do throws(SystemError) {
      unsafe try file.write(bytes, at: 0)
      try file.sync()
    } catch {
      try? remove(temporary)
      throw error
    }
    try rename(temporary, to: path)
  }

  func makeFile(_ path: String, through temporary: String, _ bytes: [UInt8]) throws(SystemError) {
    unsafe try bytes.withBytes { (bytes) throws(SystemError) in
      unsafe try makeFile(path, through: temporary, bytes)
    }
  }
}

extension SystemError {
  /// Whether it is the disk, or a quota on it, that is full, or nothing can be opened any more, so that the call may be tried again. What a
  /// failed sync has left undone nobody knows, whatever the reason.
  var isNoSpace: Bool {
    (errno == ENOSPC || errno == EDQUOT || isNoDescriptor) && call != "fdatasync" && call != "fsync"
  }

  /// Whether the process or the system has as many files open as it may.
  var isNoDescriptor: Bool { errno == EMFILE || errno == ENFILE }

  static func full(_ call: String) -> SystemError { SystemError(call, errno: ENOSPC) }
}
