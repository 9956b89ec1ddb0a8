import Foundation

/// A directory of files that several processes share.
///
/// A lock file excludes writers from each other and from readers, in this process and in others. A file appears
/// under its name only once it is complete: its bytes go to a new file, to the disk, and then the new file takes the
/// name. Symbolic links are not followed. Names that begin with a dot belong to this type.
struct SharedDirectory: Sendable {
  private static let lockName = ".lock"

  let path: String

  /// Runs a body that only reads. Others can read at the same time.
  func withReadLock<R>(_ body: (DirectoryLock) throws -> R) throws -> R {
    let lock = try openLock()
    try acquire(lock, LOCK_SH)
    if try !contains(Self.planName) { return try body(DirectoryLock(file: lock)) }
    // A writer ended in the middle of a batch. Several readers may see that; the first to get the write lock completes
    // the batch.
    try acquire(lock, LOCK_UN)
    try acquire(lock, LOCK_EX)
    try completeBatch()
    return try body(DirectoryLock(file: lock))
  }

  /// Runs a body that writes, while nobody else reads or writes.
  func withWriteLock<R>(_ body: (DirectoryLock) throws -> R) throws -> R {
    let lock = try openLock()
    try acquire(lock, LOCK_EX)
    try completeBatch()
    return try body(DirectoryLock(file: lock))
  }

  /// Opens the lock file, and creates the directory if necessary. Closing the file handle releases the lock.
  private func openLock() throws -> FileHandle {
    if let lock = try open(Self.lockName, O_RDWR | O_CREAT) { return lock }
    try attempting("create", "") {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    guard let lock = try open(Self.lockName, O_RDWR | O_CREAT) else { throw posixFailure("open", Self.lockName) }
    return lock
  }

  private func acquire(_ lock: FileHandle, _ operation: Int32) throws {
    while flock(lock.fileDescriptor, operation) != 0 {
      guard errno == EINTR else { throw posixFailure("lock", Self.lockName) }
    }
  }

  // MARK: - Reading

  func path(of name: String) -> String { path + "/" + name }

  /// Returns the names of the regular files, except this type's own, in no particular order. O(n).
  func names() throws -> [String] {
    let names = try attempting("list", "") { try FileManager.default.contentsOfDirectory(atPath: path) }
    return try names.filter { try !$0.hasPrefix(".") && mode(of: $0) & S_IFMT == S_IFREG }
  }

  /// Returns the bytes of a file; nil if there is no such file.
  func bytes(of name: String) throws -> Data? {
    guard let file = try open(name, O_RDONLY) else { return nil }
    return try attempting("read", name) { try file.readToEnd() ?? Data() }
  }

  /// Returns whether anything has this name, a file or not.
  func contains(_ name: String) throws -> Bool { try mode(of: name) != 0 }

  /// Returns the file type and permissions of a name; 0 if nothing has that name.
  private func mode(of name: String) throws -> mode_t {
    var status = stat()
    if unsafe lstat(path(of: name), &status) == 0 { return status.st_mode }
    guard errno == ENOENT else { throw posixFailure("look at", name) }
    return 0
  }

  /// Returns when a name in the directory last changed, as precisely as the system knows it.
  func modificationTime() throws -> DirectoryTime {
    var status = stat()
    guard unsafe lstat(path(of: "."), &status) == 0 else { throw posixFailure("look at", "") }
    return DirectoryTime(
      inode: UInt64(status.st_ino), seconds: Int(status.st_mtim.tv_sec), nanoseconds: Int(status.st_mtim.tv_nsec))
  }

  /// Opens a file; returns nil if there is none.
  func open(_ name: String, _ flags: Int32) throws -> FileHandle? {
    while true {
      let descriptor = unsafe Foundation.open(path(of: name), flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
      if descriptor >= 0 { return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true) }
      switch errno {
      case EINTR: continue
      case ENOENT: return nil
      default: throw posixFailure("open", name)
      }
    }
  }

  /// Runs a body, and throws its error as one of this directory's.
  func attempting<R>(_ verb: String, _ name: String, _ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch {
      throw DataSourceError(.failed, "can't \(verb) \(path(of: name)): \(error.localizedDescription)")
    }
  }

  /// Returns an error with the reason in `errno`.
  private func posixFailure(_ verb: String, _ name: String) -> DataSourceError {
    let reason = POSIXErrorCode(rawValue: errno).map { POSIXError($0).localizedDescription } ?? "error \(errno)"
    return DataSourceError(.failed, "can't \(verb) \(path(of: name)): \(reason)")
  }

  // MARK: - Writing

  // Several files change together, whatever happens in between. The new bytes go to files beside them. Then a plan of
  // the renames and removals takes its name, which is the commit. Then the plan is executed. Anyone who finds a plan
  // executes it first. A crash before the commit leaves files that the next change overwrites.

  private static let planName = ".plan"
  private static let newPlanName = ".plan.new"
  /// The name of the first new file until it gets its own; the names of the others also have a number.
  private static let newName = ".new"

  private enum Step: Codable {
    case rename(String, to: String)
    case remove(String)

    var names: [String] {
      switch self {
      case .rename(let name, let other): [name, other]
      case .remove(let name): [name]
      }
    }
  }

  /// Makes changes. The caller holds the write lock.
  /// - Parameter atomically: Whether a crash leaves all of the changes or none. Otherwise all writes are on the disk
  ///   before anything is removed, and a crash may leave files that should have been removed.
  func apply(_ changes: [FileChange], atomically: Bool) throws {
    let steps = try prepare(changes)
    let hasPlan = atomically && steps.count > 1
    if hasPlan {
      try create(Self.newPlanName, JSONEncoder().encode(steps))
      // The names of the new files must reach the disk before the plan's name does.
      try synchronize()
      try rename(Self.newPlanName, to: Self.planName)
      try synchronize()
    }
    try execute(steps, hasPlan: hasPlan)
  }

  /// Executes a plan that a crash left behind. The caller holds the write lock.
  private func completeBatch() throws {
    guard let plan = try bytes(of: Self.planName) else { return }
    let steps = try attempting("carry out", Self.planName) { try JSONDecoder().decode([Step].self, from: plan) }
    // The plan must not touch files elsewhere, no matter who wrote it.
    guard steps.flatMap(\.names).allSatisfy({ !$0.contains("/") && ![".", "..", ""].contains($0) }) else {
      throw DataSourceError(
        .failed, "\(path(of: Self.planName)) names files outside of its directory: remove the plan")
    }
    try execute(steps, hasPlan: true)
  }

  /// Writes the new files.
  private func prepare(_ changes: [FileChange]) throws -> [Step] {
    var steps: [Step] = []
    do {
      for (number, change) in changes.enumerated() {
        switch change {
        case .write(let name, let bytes):
          let new = number == 0 ? Self.newName : "\(Self.newName)-\(number)"
          steps.append(.rename(new, to: name))
          try create(new, bytes)
        case .remove(let name):
          steps.append(.remove(name))
        }
      }
    } catch {
      for case .rename(let new, _) in steps { try? remove(new) }
      throw error
    }
    return steps
  }

  private func execute(_ steps: [Step], hasPlan: Bool) throws {
    let renames = steps.filter { if case .rename = $0 { true } else { false } }
    for case .rename(let name, let other) in renames { try rename(name, to: other) }
    if !renames.isEmpty { try synchronize() }
    for case .remove(let name) in steps { try remove(name) }
    if renames.isEmpty || hasPlan, !steps.isEmpty { try synchronize() }
    // Remove the plan last, and before any other change. Executing it twice in a row does no harm, but executing it
    // later would.
    if hasPlan {
      try remove(Self.planName)
      try synchronize()
    }
  }

  /// Writes a new file. On return its content is on the disk, but maybe not its name.
  private func create(_ name: String, _ bytes: Data) throws {
    guard let file = try open(name, O_WRONLY | O_CREAT | O_TRUNC) else { throw posixFailure("create", name) }
    try attempting("write", name) {
      try file.write(contentsOf: bytes)
      try file.synchronize()
      try file.close()
    }
  }

  /// Renames a file, and replaces any file that has the other name. Succeeds if there is no such file.
  private func rename(_ name: String, to other: String) throws {
    guard unsafe Foundation.rename(path(of: name), path(of: other)) != 0 else { return }
    guard errno == ENOENT else { throw posixFailure("rename", name) }
  }

  /// Removes a file. Succeeds if there is no such file.
  private func remove(_ name: String) throws {
    guard unsafe unlink(path(of: name)) != 0 else { return }
    guard errno == ENOENT else { throw posixFailure("remove", name) }
  }

  /// Brings the names in the directory to the disk.
  private func synchronize() throws {
    guard let directory = try open(".", O_RDONLY | O_DIRECTORY) else { throw posixFailure("open", "") }
    guard fsync(directory.fileDescriptor) == 0 else { throw posixFailure("write", "") }
  }
}

/// A change to a file of a directory.
enum FileChange: Sendable {
  case write(String, Data)
  case remove(String)
}

/// The modification time of a directory. It differs after every change, except between changes in the same tick of the
/// system's clock.
struct DirectoryTime: Hashable {
  let inode: UInt64
  let seconds: Int
  let nanoseconds: Int
}

/// The lock of a directory while it is held. The lock file contains a revision, that of the last change by a data
/// source. From it, other sources learn that the directory has changed, and no revision is used twice.
struct DirectoryLock {
  private let file: FileHandle

  fileprivate init(file: FileHandle) {
    self.file = file
  }

  /// Returns the revision; 0 if there has been no change, or if a server wrote the lock file last, which uses the same
  /// file (`directory-format.md`, §1).
  func revision() throws -> UInt64 {
    do {
      try file.seek(toOffset: 0)
      let text = String(decoding: try file.read(upToCount: 64) ?? Data(), as: UTF8.self)
      let fields = text.split(whereSeparator: \.isWhitespace)
      return fields.count == 2 && fields[0] == "revision" ? UInt64(fields[1]) ?? 0 : 0
    } catch {
      throw DataSourceError(.failed, "can't read a lock file: \(error.localizedDescription)")
    }
  }

  /// Writes the revision of a change, before the change. It needn't survive a crash of the machine, because no process
  /// that knows the directory does.
  func setRevision(_ revision: UInt64) throws {
    do {
      try file.truncate(atOffset: 0)
      try file.write(contentsOf: Data("revision \(revision)\n".utf8))
    } catch {
      throw DataSourceError(.failed, "can't write a lock file: \(error.localizedDescription)")
    }
  }
}
