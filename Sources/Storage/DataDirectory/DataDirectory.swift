import Documents
import EntryFiles
import Glibc
import Platform

/// The folder in which a server keeps its durable stores, and the list of them (Protocol/data-directory.md).
///
/// One process owns it until `close`, or the end of this object. The list of stores must be changed by one call at a
/// time; the server's catalog guarantees that. A store exists from the renaming of its folder on, and ceases to exist
/// with another renaming, so a crash leaves it whole or not at all.
package final class DataDirectory: Sendable {
  private static let lockName = "lock"
  private static let formatName = "format"
  private static let storesName = "stores"
  static let descriptionName = "store"
  private static let filesName = "files"
  private static let indexesName = "indexes"
  private static let damagedIndexesName = "damaged-indexes"
  /// The folder that every ext4 file system has at its root, which may be mounted here.
  private static let lostAndFoundName = "lost+found"
  private static let formatText = "larder data directory 1\n"
  /// The prefixes of a store's folder while the store is being created or removed.
  private static let newPrefix = ".new-"
  private static let droppedPrefix = ".dropped-"

  package let path: String
  let fileSystem: any FileSystem
  /// The engines that stores can have.
  private let engines: [EngineKind]
  /// Removes what dropped stores have left.
  private let remover: FolderRemover
  /// The locks on the directory; nil once it is closed.
  private let locks: Lock<Locks?>

  /// The lock on the directory itself, if its file system can lock folders, and on the file `lock`, if there is one or
  /// it may be created.
  private struct Locks: ~Copyable, Sendable {
    let folder: FileLock?
    var file: FileLock?
  }

  private init(
    _ path: String, _ fileSystem: any FileSystem, _ engines: [EngineKind], _ locks: consuming Locks?
  ) {
    self.path = path
    self.fileSystem = fileSystem
    self.engines = engines
    self.locks = Lock(locks)
    remover = FolderRemover(fileSystem)
  }

  deinit { remover.stop() }

  /// Lets other processes open the directory. Call this when all stores are closed, and don't use it any more.
  package func close() {
    remover.stop()
    locks.withLock { $0 = nil }
  }

  /// Opens the data directory at an absolute path. Creates it if necessary, and removes what a crash has left of stores
  /// that were being created or dropped.
  /// - Throws: `inUse` if another process has it open.
  package static func open(
    _ path: String, on fileSystem: any FileSystem = LocalFileSystem(), engines: [EngineKind] = .builtIn
  ) throws(DataDirectoryError) -> DataDirectory {
    try createFolder(path, on: fileSystem)
    var locks = try lockFolder(path)
    locks.file = try lockFile(in: path, creating: true)
    let directory = DataDirectory(path, fileSystem, engines, locks)
    try directory.syncParent()
    try directory.checkFormat()
    try directory.checkVersions()
    try createFolder(directory.storesPath, on: fileSystem)
    // An earlier process may have ended between a renaming and the sync. Nothing is removed before the renaming is on
    // disk, and no store is used before its name is.
    for folder in [path, directory.storesPath] {
      try directory.calling(folder) { () throws(SystemError) in try fileSystem.syncFolder(folder) }
    }
    try directory.removeUnfinished()
    return directory
  }

  /// Opens an existing data directory for reading, and changes nothing in it except the process id in its lock file.
  /// - Throws: `inUse` if another process has it open; `notUsable` if it is not a data directory.
  package static func openUnchanged(
    _ path: String, on fileSystem: any FileSystem = LocalFileSystem(), engines: [EngineKind] = .builtIn
  ) throws(DataDirectoryError) -> DataDirectory {
    let unlocked = DataDirectory(path, fileSystem, engines, nil)
    let format = path + "/" + formatName
    guard try unlocked.calling(format, { () throws(SystemError) in try fileSystem.kind(of: format) }) != nil else {
      throw .notUsable(
        path: path, reason: "this is not a server's data directory; it has no file '\(formatName)'")
    }
    try unlocked.checkFormat()
    var locks = try lockFolder(path)
    let lock = path + "/" + lockName
    // Don't create a lock file, because it would belong to this user.
    guard try unlocked.calling(lock, { () throws(SystemError) in try fileSystem.kind(of: lock) }) != nil else {
      return DataDirectory(path, fileSystem, engines, locks)
    }
    do throws(DataDirectoryError) { locks.file = try lockFile(in: path, creating: false) } catch {
      // No server writes to a read-only file system.
      guard case .system(_, let error) = error, error.errno == EROFS else { throw error }
    }
    return DataDirectory(path, fileSystem, engines, locks)
  }

  private static func lockFolder(_ path: String) throws(DataDirectoryError) -> Locks {
    do throws(FileLock.Failure) {
      return Locks(folder: try FileLock.acquire(folder: path, ownerIn: path + "/" + lockName), file: nil)
    } catch {
      throw failure(error, path, at: path)
    }
  }

  private static func lockFile(in path: String, creating: Bool) throws(DataDirectoryError) -> FileLock {
    let file = path + "/" + lockName
    do throws(FileLock.Failure) { return try FileLock.acquire(file, creating: creating) } catch {
      throw failure(error, path, at: file)
    }
  }

  private static func failure(_ error: FileLock.Failure, _ path: String, at place: String) -> DataDirectoryError {
    switch error {
    case .locked(let owner): .inUse(path: path, owner: owner)
    case .failed(let error): .system(path: place, error)
    }
  }

  /// Checks that no later version of this program has written any of the stores, before anything is changed. Whatever
  /// else is wrong with a store is found when it is opened.
  private func checkVersions() throws(DataDirectoryError) {
    for text in (try? fileSystem.list(storesPath)) ?? [] where !Self.isUnfinished(text) {
      guard let name = try? StoreName(text) else { continue }
      let path = folder(of: name) + "/" + Self.descriptionName
      let bytes = (try? fileSystem.open(path, .reading).bytes(at: 0, count: 4_096)) ?? []
      guard !StoreDescription.isOfLaterVersion(bytes) else { throw .notUsable(path: path, reason: laterVersionProblem) }
      do {
        try description(of: name).engine.files?.checkVersion(in: filesFolder(of: name), on: fileSystem)
      } catch {
        guard let error = error as? any FileEngineError, error.isLaterVersion else { continue }
        throw .notUsable(path: error.path ?? path, reason: laterVersionProblem)
      }
    }
  }

  private static func createFolder(_ path: String, on fileSystem: any FileSystem) throws(DataDirectoryError) {
    do throws(SystemError) {
      switch try fileSystem.kind(of: path) {
      case .folder?: return
      case nil: return try fileSystem.createFolder(path)
      case .file?, .other?: break
      }
    } catch {
      throw .system(path: path, error)
    }
    throw .notUsable(path: path, reason: "this is not a folder, and links are not followed")
  }

  /// Puts the name of a new directory on disk. A directory with the format has been through this.
  private func syncParent() throws(DataDirectoryError) {
    try calling(path) { () throws(SystemError) in
      guard try fileSystem.kind(of: path + "/" + Self.formatName) == nil else { return }
      do throws(SystemError) { try fileSystem.syncFolder(path + "/..") } catch {
        // This process may not read the parent, or the parent's file system can't sync folders, as some read-only ones
        // can't. Then someone else has created the directory.
        guard [EACCES, EINVAL].contains(error.errno) else { throw error }
      }
    }
  }

  private func checkFormat() throws(DataDirectoryError) {
    let file = path + "/" + Self.formatName
    let found: [UInt8] = try calling(file) { () throws(SystemError) in
      if try fileSystem.kind(of: file) == nil {
        try fileSystem.writeFileAtomically(file, through: path + "/.new", Array(Self.formatText.utf8))
        try fileSystem.syncFolder(path)
      }
      return try fileSystem.open(file, .reading).bytes(at: 0, count: 256)
    }
    guard found == Array(Self.formatText.utf8) else {
      throw .notUsable(path: file, reason: "this version of larder doesn't support the format of this data directory")
    }
  }

  var storesPath: String { path + "/" + Self.storesName }

  private func folder(of name: StoreName) -> String { storesPath + "/" + name.text }

  /// Returns the folder for the files of the store's engine. It exists as long as the store does.
  package func filesFolder(of name: StoreName) -> String { folder(of: name) + "/" + Self.filesName }

  /// Prepares the folder of a store that is about to be opened: puts the names in it on disk, which an earlier process
  /// may have changed and not synced.
  /// - Returns: The folder for the files of the store's engine.
  /// - Throws: `notUsable` if that folder is missing.
  func prepareFolder(of name: StoreName) throws(DataDirectoryError) -> String {
    let (folder, files) = (folder(of: name), filesFolder(of: name))
    guard try calling(files, { () throws(SystemError) in try fileSystem.kind(of: files) }) == .folder else {
      throw .notUsable(path: files, reason: "the folder with the store's files is missing")
    }
    try calling(folder) { () throws(SystemError) in try fileSystem.syncFolder(folder) }
    return files
  }

  func calling<Result>(
    _ path: String, _ body: () throws(SystemError) -> Result
  ) throws(DataDirectoryError) -> Result {
    do throws(SystemError) { return try body() } catch { throw .system(path: path, error) }
  }

  // MARK: The list of stores

  /// Something in the place of a store: the store's description, or why it has none.
  package struct FoundStore: Sendable {
    /// The name of its folder.
    package let folderName: String
    package let description: Result<StoreDescription, DataDirectoryError>
  }

  /// Returns everything that has the place of a store, sorted by name.
  func foundStores() throws(DataDirectoryError) -> [FoundStore] {
    try storeFolderNames().map { folderName in
      do throws(DataDirectoryError) {
        return FoundStore(folderName: folderName, description: .success(try description(inFolder: folderName)))
      } catch {
        return FoundStore(folderName: folderName, description: .failure(error))
      }
    }
  }

  /// Returns the names of all folders that should be those of stores, and of whatever else is there, in order.
  func storeFolderNames() throws(DataDirectoryError) -> [String] {
    let names = try calling(storesPath) { () throws(SystemError) in
      try fileSystem.kind(of: storesPath) == nil ? [] : try fileSystem.list(storesPath)
    }
    return names.filter { !Self.isUnfinished($0) && !isEmptyLostAndFound($0) }.sorted()
  }

  /// Returns whether a name is that of the folder in which `fsck` puts files, and it has put none there. Only root can
  /// look into it.
  private func isEmptyLostAndFound(_ name: String) -> Bool {
    let path = storesPath + "/" + name
    return name == Self.lostAndFoundName && (try? fileSystem.kind(of: path)) == .folder
      && ((try? fileSystem.list(path)) ?? []).isEmpty
  }

  private func description(inFolder folderName: String) throws(DataDirectoryError) -> StoreDescription {
    let path = storesPath + "/" + folderName
    guard let name = try? StoreName(folderName),
      try calling(path, { () throws(SystemError) in try fileSystem.kind(of: path) }) == .folder
    else { throw .notUsable(path: path, reason: "this is not the folder of a store; move it away") }
    return try description(of: name)
  }

  /// Returns the descriptions of all stores, sorted by name.
  /// - Throws: `damagedDescription` if one of them can't be read; `notUsable` for anything that is not the folder of a
  ///   store.
  package func stores() throws(DataDirectoryError) -> [StoreDescription] {
    try foundStores().map { (found) throws(DataDirectoryError) in try found.description.get() }
  }

  /// Returns the descriptions of the stores in a data directory, which a server may be using, except those that can't be
  /// read.
  package static func recordedStores(at path: String, engines: [EngineKind] = .builtIn) -> [StoreDescription] {
    let found = (try? DataDirectory(path, LocalFileSystem(), engines, nil).foundStores()) ?? []
    return found.compactMap { try? $0.description.get() }
  }

  /// Returns the description of a store.
  /// - Throws: `unknownStore` or `damagedDescription`.
  package func description(of name: StoreName) throws(DataDirectoryError) -> StoreDescription {
    let path = folder(of: name) + "/" + Self.descriptionName
    let bytes: [UInt8] = try calling(path) { () throws(SystemError) in
      guard try fileSystem.kind(of: path) != nil else { return [] }
      return try fileSystem.open(path, .reading).bytes(at: 0, count: 4_096)
    }
    if bytes.isEmpty, try calling(path, { () throws(SystemError) in try fileSystem.kind(of: folder(of: name)) }) == nil
    {
      throw .unknownStore(name)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw .damagedDescription(path: path, line: 0, reason: "the file is not UTF-8 text")
    }
    do throws(StoreDescription.ParseError) {
      let description = try StoreDescription(parsing: text, engines: engines)
      guard description.name == name else {
        throw StoreDescription.ParseError(line: 0, reason: "the file describes a store \"\(description.name)\"")
      }
      return description
    } catch {
      throw .damagedDescription(path: path, line: error.line, reason: error.reason)
    }
  }

  /// Records a new store, and creates the folder for its engine's files. The store is on disk when this returns.
  /// - Throws: `storeExists`.
  package func create(_ description: StoreDescription) throws(DataDirectoryError) {
    let path = folder(of: description.name)
    let unfinished = storesPath + "/" + Self.newPrefix + description.name.text
    guard try calling(path, { () throws(SystemError) in try fileSystem.kind(of: path) }) == nil else {
      throw .storeExists(description.name)
    }
    try calling(path) { () throws(SystemError) in
      try fileSystem.removeAll(unfinished)
      try fileSystem.createFolder(unfinished)
      try fileSystem.createFolder(unfinished + "/" + Self.filesName)
      try fileSystem.writeFileAtomically(
        unfinished + "/" + Self.descriptionName, through: unfinished + "/.new", Array(description.text.utf8))
      try fileSystem.writeFileAtomically(
        unfinished + "/" + StoreHistoryFile.name, through: unfinished + "/.new", StoreHistory.new.bytes)
      try fileSystem.syncFolder(unfinished)
      try fileSystem.rename(unfinished, to: path)
      do throws(SystemError) { try fileSystem.syncFolder(storesPath) } catch {
        // For the caller, the store does not exist.
        try? fileSystem.rename(path, to: unfinished)
        throw error
      }
    }
  }

  /// Removes a store. No process may have it open. It is gone when this returns, and its files are removed in the
  /// background, or after the data directory is next opened.
  /// - Throws: `unknownStore`.
  package func drop(_ name: StoreName) throws(DataDirectoryError) {
    let path = folder(of: name)
    // No other folder has this name, whatever an earlier store with the same name has left.
    let number = hexadecimalText(.random(in: .min ... .max), digits: 16)
    let dropped = storesPath + "/" + Self.droppedPrefix + number
    guard try calling(path, { () throws(SystemError) in try fileSystem.kind(of: path) }) != nil else {
      throw .unknownStore(name)
    }
    try calling(path) { () throws(SystemError) in
      try fileSystem.rename(path, to: dropped)
      try fileSystem.syncFolder(storesPath)
    }
    remover.remove(dropped)
  }

  // MARK: Indexes

  /// Returns the path of the file with the definitions of a store's indexes. A store without the file has no indexes.
  func indexesPath(of name: StoreName) -> String { folder(of: name) + "/" + Self.indexesName }

  /// Returns the definitions of a store's indexes, in the order in which they were recorded.
  /// - Throws: `damagedIndexes`.
  package func indexes(of name: StoreName) throws(DataDirectoryError) -> [DocumentIndex] {
    let path = indexesPath(of: name)
    let bytes: [UInt8]? = try calling(path) { () throws(SystemError) in
      guard try fileSystem.kind(of: path) != nil else { return nil }
      let file = try fileSystem.open(path, .reading)
      // One byte more than the maximum reveals that the file is too long.
      return try file.bytes(at: 0, count: min(file.byteCount(), IndexDefinitions.maxFileByteCount + 1))
    }
    guard let bytes else { return [] }
    do throws(IndexDefinitions.ParseError) { return try IndexDefinitions.indexes(inFile: bytes) } catch {
      throw .damagedIndexes(path: path, line: error.line, reason: error.reason)
    }
  }

  /// Keeps a copy of a damaged file with the definitions of a store's indexes, which is about to be replaced. A file that
  /// can't be read isn't kept.
  func keepDamagedIndexes(of name: StoreName) {
    let folder = folder(of: name)
    guard let file = try? fileSystem.open(indexesPath(of: name), .reading), let byteCount = try? file.byteCount(),
      let bytes = try? file.bytes(at: 0, count: min(byteCount, 2 * IndexDefinitions.maxFileByteCount))
    else { return }
    try? fileSystem.writeFileAtomically(
      folder + "/" + Self.damagedIndexesName, through: folder + "/.new-" + Self.indexesName, bytes)
  }

  /// Records the definitions of a store's indexes in place of the earlier ones. They are on disk when this returns.
  ///
  /// After a crash, the store has either these definitions or the earlier ones. The same is true of a failure, except
  /// that a store whose folder can't be synced may have these definitions until the machine crashes.
  /// - Throws: `unknownStore`.
  package func setIndexes(_ indexes: [DocumentIndex], of name: StoreName) throws(DataDirectoryError) {
    let (folder, path) = (folder(of: name), indexesPath(of: name))
    guard try calling(folder, { () throws(SystemError) in try fileSystem.kind(of: folder) }) != nil else {
      throw .unknownStore(name)
    }
    try calling(path) { () throws(SystemError) in
      try fileSystem.writeFileAtomically(
        path, through: folder + "/.new-" + Self.indexesName, IndexDefinitions.fileBytes(indexes))
      try fileSystem.syncFolder(folder)
    }
  }

  /// Returns the file with a store's history.
  func historyFile(of name: StoreName) -> StoreHistoryFile { StoreHistoryFile(in: folder(of: name), on: fileSystem) }

  /// Returns the keys that are kept of a store's large documents.
  func keptKeys(of name: StoreName) -> KeptKeys { KeptKeys(in: folder(of: name), on: fileSystem) }

  // MARK: Unfinished changes

  private func removeUnfinished() throws(DataDirectoryError) {
    try calling(storesPath) { () throws(SystemError) in
      for name in try fileSystem.list(storesPath) {
        // A store that was being created has few files yet.
        if name.hasPrefix(Self.newPrefix) { try fileSystem.removeAll(storesPath + "/" + name) }
        if name.hasPrefix(Self.droppedPrefix) { remover.remove(storesPath + "/" + name) }
      }
    }
  }

  /// Returns when the files of all dropped stores are removed.
  func waitForRemovals() { remover.wait() }

  /// Returns whether a folder with that name belongs to a store that was being created or dropped.
  static func isUnfinished(_ name: String) -> Bool {
    name.hasPrefix(newPrefix) || name.hasPrefix(droppedPrefix)
  }
}

extension FileSystem {
  /// Removes a file, or a folder with all its contents. Links are removed, but not what they point to.
  func removeAll(_ path: String) throws(SystemError) {
    switch try kind(of: path) {
    case nil: return
    case .folder?:
      for name in try list(path) { try removeAll(path + "/" + name) }
      try removeFolder(path)
    case .file?, .other?: try remove(path)
    }
  }
}

/// What can go wrong with a data directory and the list of its stores.
package enum DataDirectoryError: Error, Equatable, Sendable {
  /// Another process has the directory open: the one with that id, if it has recorded it yet.
  case inUse(path: String, owner: Int32?)
  /// There is something else at this path.
  case notUsable(path: String, reason: String)
  /// A store's description can't be read. Line 0 means the file as a whole.
  case damagedDescription(path: String, line: Int, reason: String)
  /// The definitions of a store's indexes can't be read. Line 0 means the file as a whole.
  case damagedIndexes(path: String, line: Int, reason: String)
  case storeExists(StoreName)
  case unknownStore(StoreName)
  case system(path: String, SystemError)

  /// The error without advice: where it is, and what is wrong.
  var summary: String {
    switch self {
    case .damagedDescription(let path, _, _), .damagedIndexes(let path, _, _): "\(path): \(reason)"
    case .inUse, .notUsable, .storeExists, .unknownStore, .system: "\(self)"
    }
  }

  /// What is wrong, without the path.
  var reason: String {
    switch self {
    case .damagedDescription(_, 0, let reason), .damagedIndexes(_, 0, let reason): reason
    case .damagedDescription(_, let line, let reason), .damagedIndexes(_, let line, let reason):
      "line \(line): \(reason)"
    case .notUsable(_, let reason): reason
    case .system(_, let error): "\(error)"
    case .inUse, .storeExists, .unknownStore: "\(self)"
    }
  }
}

extension DataDirectoryError: CustomStringConvertible {
  private static let indexesAdvice =
    "entries are not affected; move the file away, start the server, and create the store's indexes again"

  package var description: String {
    switch self {
    case .inUse(let path, let owner?):
      "the data directory \(path) is in use by process \(owner); stop that server, or use another directory"
    case .inUse(let path, nil):
      "the data directory \(path) is in use by another process; stop that server, or use another directory"
    case .notUsable(let path, let reason): "\(path): \(reason)"
    case .damagedDescription(let path, 0, let reason): "\(path): \(reason); correct the file, or move its folder away"
    case .damagedDescription(let path, let line, let reason):
      "\(path), line \(line): \(reason); correct the file, or move its folder away"
    case .damagedIndexes(let path, 0, let reason): "\(path): \(reason); \(Self.indexesAdvice)"
    case .damagedIndexes(let path, let line, let reason): "\(path), line \(line): \(reason); \(Self.indexesAdvice)"
    case .storeExists(let name): "there is a store \"\(name)\" in the data directory already"
    case .unknownStore(let name): "there is no store \"\(name)\" in the data directory"
    case .system(let path, let error): "\(path): \(error)"
    }
  }
}
