// What happens to a sync that fails:
//
// It is unknown which of the commits not yet durable are on disk. The store becomes read-only, and held replies that
// reveal such commits are replaced with the error `failed`. The system may go on to show them and never write them, so
// the next start writes them again before it serves them (`rewrite` in `File+Contents`).

import Glibc
import Platform

extension File {
  private static var uncheckedByteCount: Int { 1 << 20 }

  /// Reads the whole file, up to its size at the time of the call.
  func contents() throws(SystemError) -> [UInt8] { try bytes(at: 0, count: byteCount()) }

  /// Reads bytes at an offset. Returns fewer than `count` if the file ends before, and takes no memory for what it
  /// doesn't have.
  func bytes(at offset: Int, count: Int) throws(SystemError) -> [UInt8] {
    // A count from a file proves nothing. Small ones aren't worth the call.
    let count = count <= Self.uncheckedByteCount ? count : min(count, max(0, try byteCount() - offset))
    var bytes = [UInt8](repeating: 0, count: count)
    var buffer = bytes.mutableSpan
    let byteCount = unsafe try buffer.withUnsafeMutableBytes { (buffer) throws(SystemError) in
      unsafe try read(at: offset, into: buffer)
    }
    bytes.removeLast(count - byteCount)
    return bytes
  }

  /// Writes bytes at an offset.
  func write(_ bytes: [UInt8], at offset: Int) throws(SystemError) {
    unsafe try bytes.withBytes { (bytes) throws(SystemError) in unsafe try write(bytes, at: offset) }
  }
}

extension File {
  private static var pieceByteCount: Int { 1 << 20 }

  /// Writes a part of the file again as it is, so that the next sync puts it on disk.
  ///
  /// After a sync has failed in an earlier process, the system may go on to show what was written, and not write it any
  /// more, because it takes it for written.
  func rewrite(_ range: Range<Int>) throws(SystemError) {
    for offset in stride(from: range.lowerBound, to: range.upperBound, by: Self.pieceByteCount) {
      try write(bytes(at: offset, count: min(Self.pieceByteCount, range.upperBound - offset)), at: offset)
    }
  }
}

extension FileSystem {
  /// Creates or replaces a file atomically: after a crash, the file is complete or as before. The caller syncs the
  /// folder to make the file durable.
  /// - Parameter temporary: The path of a temporary file in the same folder. A file left there by a crash is removed.
  func writeFileAtomically(_ path: String, through temporary: String, _ bytes: UnsafeRawBufferPointer)
    throws(SystemError)
  {
    if try kind(of: temporary) != nil { try remove(temporary) }
    let file = try open(temporary, .creating)
    do throws(SystemError) {
      unsafe try file.write(bytes, at: 0)
      try file.sync()
    } catch {
      try? remove(temporary)
      throw error
    }
    try rename(temporary, to: path)
  }

  /// Creates or replaces a file atomically.
  func writeFileAtomically(_ path: String, through temporary: String, _ bytes: [UInt8]) throws(SystemError) {
    unsafe try bytes.withBytes { (bytes) throws(SystemError) in
      unsafe try writeFileAtomically(path, through: temporary, bytes)
    }
  }
}

extension SystemError {
  /// Whether the call may be retried later because the disk or a quota is full, the file may not become larger, or no
  /// more files can be opened. A failed sync must never be retried, because it is unknown what it left undone.
  var isNoSpace: Bool {
    (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || isNoDescriptor) && call != "fdatasync" && call != "fsync"
  }

  /// Whether the process or the system has reached its limit of open files.
  var isNoDescriptor: Bool { errno == EMFILE || errno == ENFILE }

  /// Returns the error of a call that found the disk full.
  static func full(_ call: String) -> SystemError { SystemError(call, errno: ENOSPC) }
}
