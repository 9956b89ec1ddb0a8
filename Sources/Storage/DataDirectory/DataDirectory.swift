import Glibc
import Platform

/// The folder in which a server keeps its durable stores, and the list of them (Protocol/data-directory.md).
///
/// It belongs to one process for as long as this lives. One call at a time may change the list; the server's catalog sees to that.
package final class DataDirectory: Sendable {
  static let lockName = "lock"
  static let formatName = "format"
  static let storesName = "stores"
  static let descriptionName = "store"
  static let filesName = "files"
  static let formatText = "larder data directory 1\n"
  /// A store's folder goes by these while it is being made, and while it is being removed.
  static let newPrefix = ".new-"
  static let droppedPrefix = ".dropped-"

  package let path: String
  let fileSystem: any FileSystem
  /// Nil when there was no file to lock, and nothing was to be made.
  private let lock: FileLock?

  private init(_ path: String, _ fileSystem: any FileSystem, _ lock: consuming FileLock?) {
    self.path = path
    self.fileSystem = fileSystem
    self.lock = lock
  }

  /// Opens the data directory of that absolute path, which is made if need be, and removes what a crash has left of stores that were being
  /// made or dropped.
  /// - Throws: `inUse` when another process has it.
  package static func open(
    _ path: String, on fileSystem: any FileSystem = LocalFileSystem()
  ) throws(DataDirectoryError) -> DataDirectory {
    try makeFolder(path, on: fileSystem)
    let directory = DataDirectory(path, fileSystem, try takeLock(path))
    try directory.checkFormat()
    try makeFolder(directory.storesPath, on: fileSystem)
    try directory.removeUnfinished()
    return directory
  }

  /// Takes a data directory to look at it, and changes nothing in it but the number in its lock.
  /// - Throws: `inUse` when a process has it; `notUsable` for what is none.
  package static func openUnchanged(
    _ path: String, on fileSystem: any FileSystem = LocalFileSystem()
  ) throws(DataDirectoryError) -> DataDirectory {
    let looking = DataDirectory(path, fileSystem, nil)
    let format = path + "/" + formatName
    guard try looking.calling(format, { () throws(SystemError) in try fileSystem.kind(of: format) }) != nil else {
      throw .notUsable(
        path: path, reason: "this is no data directory of a server; it would have a file '\(formatName)'")
    }
    try looking.checkFormat()
    let lock = path + "/" + lockName
    // Who has no lock is no running server. The file isn't made, since it would then be this user's.
    guard try looking.calling(lock, { () throws(SystemError) in try fileSystem.kind(of: lock) }) != nil else {
      return looking
    }
    do throws(DataDirectoryError) { return DataDirectory(path, fileSystem, try takeLock(path, making: false)) } catch {
      // Nobody writes to a disk that can only be read.
      if case .system(_, let error) = error, error.errno == EROFS { return looking }
      throw error
    }
  }

  private static func takeLock(_ path: String, making: Bool = true) throws(DataDirectoryError) -> FileLock {
    let file = path + "/" + lockName
    do throws(FileLock.Refusal) { return try FileLock.take(file, making: making) } catch {
      switch error {
      case .held(let owner): throw .inUse(path: path, owner: owner)
      case .failed(let error): throw .system(path: file, error)
      }
    }
  }

  private static func makeFolder(_ path: String, on fileSystem: any FileSystem) throws(DataDirectoryError) {
    do throws(SystemError) {
      switch try fileSystem.kind(of: path) {
      case .folder?: return
      case nil:
        try fileSystem.makeFolder(path)
        let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? ""
        return try fileSystem.syncFolder(parent.isEmpty ? "/" : parent)
      case .file?, .other?: break
      }
    } catch {
      throw .system(path: path, error)
    }
    throw .notUsable(path: path, reason: "this is not a folder, and links are not followed")
  }

  private func checkFormat() throws(DataDirectoryError) {
    let file = path + "/" + Self.formatName
    let found: [UInt8] = try calling(file) { () throws(SystemError) in
      if try fileSystem.kind(of: file) == nil {
        try fileSystem.makeFile(file, through: path + "/.new", Array(Self.formatText.utf8))
        try fileSystem.syncFolder(path)
      }
      return try fileSystem.open(file, .reading).bytes(at: 0, count: 256)
    }
    guard found == Array(Self.formatText.utf8) else {
      throw .notUsable(path: file, reason: "this data directory has a format that this version doesn't know")
    }
  }

  var storesPath: String { path + "/" + Self.storesName }

  func folder(of name: StoreName) -> String { storesPath + "/" + name.text }

  /// Where the store's engine has its files; the folder is there as long as the store is.
  package func filesFolder(of name: StoreName) -> String { folder(of: name) + "/" + Self.filesName }

  func calling<Result>(
    _ path: String, _ body: () throws(SystemError) -> Result
  ) throws(DataDirectoryError) -> Result {
    do throws(SystemError) { return try body() } catch { throw .system(path: path, error) }
  }
}
