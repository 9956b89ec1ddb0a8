import FoundationEssentials
import Platform

/// A directory of files that several processes share.
///
/// A lock file excludes writers from each other and from readers, in this process and in others. A file appears
/// under its name only once it is complete: its bytes go to a new file, to the disk, and then the new file takes the
/// name. Symbolic links are not followed. Names that begin with a dot belong to this type.
///
/// All work runs on threads that may block (`BlockingWork`), but waiting for a lock occupies none. In this process
/// calls wait in line. The lock of another process is tried again and again, because a thread that waits in `flock(2)`
/// can't be cancelled.
struct SharedDirectory: Sendable {
  static let lockName = ".lock"
  /// The number of calls that can read at the same time. A call that writes needs all of their turns.
  private static let maxReaderCount = 1_000
  private static let files = LocalFileSystem()

  let path: String
  private let lockTimeout: Duration
  private let turns: Turns

  /// - Parameter lockTimeout: How long a call waits for others, at most.
  init(path: String, lockTimeout: Duration = .seconds(30)) {
    self.path = path
    self.lockTimeout = lockTimeout
    turns = DirectoryTurns.turns(at: path, count: Self.maxReaderCount)
  }

  // MARK: - Locks

  /// Runs a body that only reads. Others can read at the same time.
  func withReadLock<R>(_ body: (DirectoryLock) throws -> R) async throws -> R {
    try await waiting(turnCount: 1) {
      let (file, isReadOnly) = try openLock(canBeReadOnly: true)
      guard try lock(file, exclusive: false) else { return nil }
      var lock = DirectoryLock(self, file: file)
      if !isReadOnly { try lock.markDirectory() }
      if try lock.hasUnfinishedChange() {
        // A writer ended in the middle of a change. Several readers may see that; the first to get the exclusive lock
        // completes it.
        if isReadOnly {
          try lock.blockUnfinishedChange()
        } else {
          guard try self.lock(file, exclusive: true) else { return nil }
          try lock.completeUnfinishedChange()
        }
      }
      return try body(lock)
    }
  }

  /// Runs a body that writes, while no other caller reads or writes.
  func withWriteLock<R>(_ body: (DirectoryLock) throws -> R) async throws -> R {
    try await waiting(turnCount: Self.maxReaderCount) {
      let (file, _) = try openLock(canBeReadOnly: false)
      guard try lock(file, exclusive: true) else { return nil }
      var lock = DirectoryLock(self, file: file)
      try lock.markDirectory()
      if try lock.hasUnfinishedChange() { try lock.completeUnfinishedChange() }
      return try body(lock)
    }
  }

  /// Runs a body that may block, and again for as long as it returns nil because another process has the lock.
  private func waiting<R>(turnCount: Int, _ body: () throws -> R?) async throws -> R {
    let deadline = ContinuousClock.now + lockTimeout
    do {
      try await turns.take(turnCount, within: lockTimeout)
    } catch is Turns.TimeoutError {
      throw lockTimeoutError("other calls of this process")
    }
    defer { turns.giveBack(turnCount) }
    var pause = Duration.milliseconds(1)
    while true {
      let result = try await BlockingWork.run { () throws -> R? in
        try Task.checkCancellation()
        return try body()
      }
      if let result { return result }
      guard .now < deadline else { throw lockTimeoutError("another process") }
      try await Task.sleep(for: pause)
      // Short pauses, so that this process gets its turn between the calls of one that is busy.
      pause = min(pause * 1.02, .milliseconds(5))
    }
  }

  private func lockTimeoutError(_ holder: String) -> DataSourceError {
    DataSourceError(
      .failed, "\(holder) used \(path) for \(lockTimeout): end what hangs, or allow a longer lockTimeout")
  }

  /// Opens the lock file, and creates the directory if necessary.
  /// - Parameter canBeReadOnly: Whether a directory that the process can't change will do. It has no lock file if nobody
  ///   has changed it; then there is nothing to lock.
  private func openLock(canBeReadOnly: Bool) throws -> (file: SharedFileLock?, isReadOnly: Bool) {
    let lockPath = self.path(of: Self.lockName)
    do throws(SystemError) {
      return (try SharedFileLock(lockPath, .writing), false)
    } catch {
      if error.isNotFound { return try createLock(canBeReadOnly: canBeReadOnly) }
      guard canBeReadOnly, error.isReadOnly else { throw failure("open", Self.lockName, error) }
      return (try attempting("open", Self.lockName) { try SharedFileLock(lockPath, .reading) }, true)
    }
  }

  private func createLock(canBeReadOnly: Bool) throws -> (file: SharedFileLock?, isReadOnly: Bool) {
    try checkIsSeparate()
    do throws(SystemError) {
      try createFolder(path)
      return (try SharedFileLock(path(of: Self.lockName), .creating), false)
    } catch {
      if canBeReadOnly, error.isReadOnly, try kind(of: ".") == .folder { return (nil, true) }
      throw failure("create", "", error)
    }
  }

  /// Checks that this directory is neither inside that of another source, nor has one inside. Such a source would see
  /// the files of the other one as its own.
  private func checkIsSeparate() throws {
    var outer = path[...]
    while let slash = outer.utf8.lastIndex(of: UInt8(ascii: "/")), slash > outer.startIndex {
      outer = outer[..<slash]
      if Self.isInUse(String(outer)) { throw nestingError("\(path) is inside \(outer)") }
    }
    for inner in Self.folders(in: path) {
      for folder in [inner] + Self.folders(in: inner) where Self.isInUse(folder) {
        throw nestingError("\(folder) is inside \(path)")
      }
    }
  }

  private func nestingError(_ reason: String) -> DataSourceError {
    DataSourceError(.illegalArgument, "\(reason), and both would be directories of data sources: separate them")
  }

  /// Returns whether a folder is the directory of a data source.
  private static func isInUse(_ folder: String) -> Bool {
    (try? SharedFileLock("\(folder)/\(lockName)", .reading).contents())?.starts(with: DirectoryLock.mark) == true
  }

  /// Returns the folders that are directly in a folder; none if it can't be read.
  private static func folders(in folder: String) -> [String] {
    let paths = ((try? files.list(folder + "/.")) ?? []).map { "\(folder)/\($0)" }
    return paths.filter { (try? files.kind(of: $0)) == .folder }
  }

  private func lock(_ file: SharedFileLock?, exclusive: Bool) throws -> Bool {
    guard let file else { return true }
    return try attempting("lock", Self.lockName) { try file.tryLock(exclusive: exclusive) }
  }

  private func createFolder(_ path: String) throws(SystemError) {
    do throws(SystemError) {
      try Self.files.createFolder(path)
    } catch {
      if error.isExisting { return }
      guard error.isNotFound, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex else {
        throw error
      }
      try createFolder(String(path[..<slash]))
      try createFolder(path)
    }
  }

  // MARK: - Reading

  func path(of name: String) -> String { path + "/" + name }

  /// Returns all names, in no particular order. O(n).
  func allNames() throws -> [String] { try attempting("list", "") { try Self.files.list(path(of: ".")) } }

  /// Returns the names of the regular files, except this type's own, in no particular order. O(n).
  func names() throws -> [String] {
    try allNames().filter { name in
      if name.hasPrefix(".") { return false }
      if case .file = try kind(of: name) { return true } else { return false }
    }
  }

  /// The size of the largest file that can be an entry's.
  private static let maxFileByteCount = Int(Int32.max)

  /// Returns the bytes of a file; nil if there is no such file.
  /// - Throws: `DataSourceError.dataSerialization` for a file that is larger than any entry's. It may take no space on
  ///   the disk, but it would take memory.
  func bytes(of name: String) throws -> Data? {
    guard let file = try open(name) else { return nil }
    return try attempting("read", name) {
      let byteCount = try file.byteCount()
      guard byteCount <= Self.maxFileByteCount else {
        throw DataSourceError(.dataSerialization, "\(path(of: name)) is damaged: it is larger than any entry")
      }
      var bytes = Data(count: byteCount)
      let count = try unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(at: 0, into: $0) }
      return count == bytes.count ? bytes : bytes.prefix(count)
    }
  }

  /// Returns some bytes of a file; nil if there is no such file.
  func bytes(of name: String, at offset: Int, count: Int) throws -> [UInt8]? {
    guard let file = try open(name) else { return nil }
    return try attempting("read", name) {
      var bytes = [UInt8](repeating: 0, count: count)
      let count = try unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(at: offset, into: $0) }
      return Array(bytes.prefix(count))
    }
  }

  /// Returns whether anything has this name, a file or not.
  func contains(_ name: String) throws -> Bool { try kind(of: name) != nil }

  func kind(of name: String) throws -> FileKind? {
    try attempting("look at", name) { try Self.files.kind(of: path(of: name)) }
  }

  /// Returns the state of the names in the directory, as precisely as the system reports it.
  func version() throws -> FolderVersion {
    try attempting("look at", "") { try FolderVersion(of: path) }
  }

  private func open(_ name: String) throws -> (any File)? {
    do throws(SystemError) {
      return try Self.files.open(path(of: name), .reading)
    } catch {
      if error.isNotFound { return nil }
      throw failure("open", name, error)
    }
  }

  // MARK: - Writing

  /// Writes a new file, and replaces one with this name. On return its content is on the disk, but maybe not its name.
  func create(_ name: String, _ bytes: Data) throws {
    try remove(name)
    try attempting("write", name) {
      let file = try Self.files.open(path(of: name), .creating)
      try unsafe bytes.withUnsafeBytes { try unsafe file.write($0, at: 0) }
      try file.sync()
    }
  }

  /// Renames a file, and replaces any file that has the other name. Succeeds if there is no such file.
  func rename(_ name: String, to other: String) throws {
    do throws(SystemError) {
      try Self.files.rename(path(of: name), to: path(of: other))
    } catch {
      if !error.isNotFound { throw failure("replace", other, error) }
    }
  }

  /// Removes a file. Succeeds if there is no such file.
  func remove(_ name: String) throws {
    do throws(SystemError) {
      try Self.files.remove(path(of: name))
    } catch {
      if !error.isNotFound { throw failure("remove", name, error) }
    }
  }

  /// Brings the names in the directory to the disk.
  func synchronize() throws {
    try attempting("sync", "") { try Self.files.syncFolder(path(of: ".")) }
  }

  // MARK: - Errors

  /// Runs a body, and throws an error of the system as one of this directory's.
  func attempting<R>(_ verb: String, _ name: String, _ body: () throws -> R) throws -> R {
    do { return try body() } catch let error as SystemError { throw failure(verb, name, error) }
  }

  private func failure(_ verb: String, _ name: String, _ error: SystemError) -> DataSourceError {
    let place = name.isEmpty ? path : path(of: name)
    return DataSourceError(.failed, "can't \(verb) \(place): \(error.isNoFile ? "it is not a file" : error.reason)")
  }
}

/// The turns at directories, which all sources of this process share that use the same path.
private enum DirectoryTurns {
  private struct Reference: Sendable {
    weak var turns: Turns?
  }

  private static let references = LockedValue<[String: Reference]>([:])

  static func turns(at path: String, count: Int) -> Turns {
    references.withLock { references in
      if let turns = references[path]?.turns { return turns }
      references = references.filter { $0.value.turns != nil }
      let turns = Turns(count: count)
      references[path] = Reference(turns: turns)
      return turns
    }
  }
}
