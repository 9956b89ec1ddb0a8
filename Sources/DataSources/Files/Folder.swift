import Foundation

/// A folder of files that processes share.
///
/// A lock file keeps writers apart from each other and from readers, be they in this process or another. Nothing but what has been
/// written whole is ever seen under a name: bytes go to a file beside it, to the disk, and then take its place. Links are not followed.
/// Names that begin with a dot are the folder's own.
struct Folder: Sendable {
  static let lockName = ".lock"

  let path: String

  func path(of name: String) -> String { path + "/" + name }

  /// Runs a body that only reads; others may read at the same time.
  func reading<R>(_ body: (FolderLock) throws -> R) throws -> R {
    let lock = try openLock()
    try take(lock, LOCK_SH)
    if try !hasUnfinishedBatch() { return try body(FolderLock(file: lock)) }
    // A writer ended in the middle. Both of us may have seen it; the first one that gets the lock finishes its work.
    try take(lock, LOCK_UN)
    try take(lock, LOCK_EX)
    try finishBatch()
    return try body(FolderLock(file: lock))
  }

  /// Runs a body that writes, alone.
  func writing<R>(_ body: (FolderLock) throws -> R) throws -> R {
    let lock = try openLock()
    try take(lock, LOCK_EX)
    try finishBatch()
    return try body(FolderLock(file: lock))
  }

  /// The names of the files in it, without the folder's own, links and folders, in no order. O(n).
  func names() throws -> [String] {
    let names = try failing("list", "") { try FileManager.default.contentsOfDirectory(atPath: path) }
    return try names.filter { try !$0.hasPrefix(".") && mode(of: $0) & S_IFMT == S_IFREG }
  }

  /// The bytes of a file; nil when there is none.
  func bytes(of name: String) throws -> Data? {
    guard let file = try open(name, O_RDONLY) else { return nil }
    return try failing("read", name) { try file.readToEnd() ?? Data() }
  }

  /// Whether there is anything of this name, be it a file or not.
  func contains(_ name: String) throws -> Bool { try mode(of: name) != 0 }

  /// The kind and the permissions of what has a name; 0 when nothing has.
  private func mode(of name: String) throws -> mode_t {
    var status = stat()
    if unsafe lstat(path(of: name), &status) == 0 { return status.st_mode }
    guard errno == ENOENT else { throw failure("look at", name) }
    return 0
  }

  /// When the names in the folder last changed, as exactly as the system knows it.
  func lastChange() throws -> FolderChange {
    var status = stat()
    guard unsafe lstat(path(of: "."), &status) == 0 else { throw failure("look at", "") }
    return FolderChange(
      folder: UInt64(status.st_ino), seconds: Int(status.st_mtim.tv_sec), nanoseconds: Int(status.st_mtim.tv_nsec))
  }

  /// The lock ends with the file handle.
  private func openLock() throws -> FileHandle {
    if let lock = try open(Folder.lockName, O_RDWR | O_CREAT) { return lock }
    try failing("create", "") {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    guard let lock = try open(Folder.lockName, O_RDWR | O_CREAT) else { throw failure("open", Folder.lockName) }
    return lock
  }

  private func take(_ lock: FileHandle, _ operation: Int32) throws {
    while flock(lock.fileDescriptor, operation) != 0 {
      guard errno == EINTR else { throw failure("lock", Folder.lockName) }
    }
  }
}
