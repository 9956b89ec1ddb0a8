import Foundation

extension Folder {
  /// Opens a file; nil when there is none.
  func open(_ name: String, _ flags: Int32) throws -> FileHandle? {
    while true {
      let descriptor = unsafe Foundation.open(path(of: name), flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
      if descriptor >= 0 { return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true) }
      switch errno {
      case EINTR: continue
      case ENOENT: return nil
      default: throw failure("open", name)
      }
    }
  }

  /// Writes a new file, of which all is on the disk on return but its name.
  func create(_ name: String, _ bytes: Data) throws {
    guard let file = try open(name, O_WRONLY | O_CREAT | O_TRUNC) else { throw failure("create", name) }
    try failing("write", name) {
      try file.write(contentsOf: bytes)
      try file.synchronize()
      try file.close()
    }
  }

  /// Gives a file another's name, whose place it takes. It is no error when the file is gone.
  func rename(_ name: String, to other: String) throws {
    guard unsafe Foundation.rename(path(of: name), path(of: other)) != 0 else { return }
    guard errno == ENOENT else { throw failure("rename", name) }
  }

  /// Removes a file. It is no error when it is gone.
  func unlink(_ name: String) throws {
    guard unsafe Foundation.unlink(path(of: name)) != 0 else { return }
    guard errno == ENOENT else { throw failure("remove", name) }
  }

  /// Brings the folder's names to the disk.
  func synchronize() throws {
    guard let folder = try open(".", O_RDONLY | O_DIRECTORY) else { throw failure("open", "") }
    guard fsync(folder.fileDescriptor) == 0 else { throw failure("write", "") }
  }

  /// The error for what `errno` says.
  func failure(_ verb: String, _ name: String) -> DataSourceError {
    let reason = POSIXErrorCode(rawValue: errno).map { POSIXError($0).localizedDescription } ?? "error \(errno)"
    return DataSourceError(.failed, "can't \(verb) \(path(of: name)): \(reason)")
  }

  func failing<R>(_ verb: String, _ name: String, _ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch {
      throw DataSourceError(.failed, "can't \(verb) \(path(of: name)): \(error.localizedDescription)")
    }
  }
}
