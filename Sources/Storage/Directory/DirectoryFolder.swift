import Platform

/// The folder of a directory store, and the names in it that don't belong to an entry.
struct DirectoryFolder: Sendable {
  /// The lock file of a folder outside a data directory. A process locks it before it opens the folder.
  static let lockName = ".lock"
  /// The name of an entry's file while it is being written. One thread writes them, so there is only one.
  static let temporaryName = ".new"
  /// The name of a journal while it is being created.
  static let temporaryJournalName = ".new-journal"
  /// An empty file. A folder that has it has been opened by a server, and therefore has a list of journals.
  static let markerName = ".opened"

  /// The names of files that don't belong to entries, apart from journals.
  static let ownNames: Set = [Journal.listName, temporaryJournalName, markerName, lockName]

  private let fileSystem: any FileSystem
  let path: String

  init(fileSystem: any FileSystem, path: String) {
    self.fileSystem = fileSystem
    self.path = path
  }

  func path(_ name: String) -> String { path + "/" + name }

  /// Returns the names of everything in the folder.
  func names() throws(SystemError) -> [String] { try fileSystem.list(path) }

  /// Returns whether there is a regular file with that name.
  func isFile(_ name: String) throws(SystemError) -> Bool {
    if case .file? = try fileSystem.kind(of: path(name)) { true } else { false }
  }

  func open(_ name: String, _ access: FileAccess) throws(SystemError) -> any File {
    try fileSystem.open(path(name), access)
  }

  /// Writes a file atomically.
  func write(_ name: String, _ bytes: [UInt8]) throws(SystemError) {
    try fileSystem.writeFileAtomically(path(name), through: path(Self.temporaryName), bytes)
  }

  /// Creates the file that is to become a journal, and that `publishJournal` names.
  func createJournal() throws(SystemError) -> any File {
    try removeIfPresent(Self.temporaryJournalName)
    return try open(Self.temporaryJournalName, .creating)
  }

  /// Gives a new journal its name, which is on disk when this returns.
  func publishJournal(as name: String) throws(SystemError) {
    try rename(Self.temporaryJournalName, to: name)
    try sync()
  }

  func rename(_ name: String, to other: String) throws(SystemError) {
    try fileSystem.rename(path(name), to: path(other))
  }

  /// Puts the names in the folder on disk.
  func sync() throws(SystemError) { try fileSystem.syncFolder(path) }

  /// Removes a file. Anything that isn't a file stays, because someone else put it there.
  func removeIfPresent(_ name: String) throws(SystemError) {
    if try isFile(name) { try fileSystem.remove(path(name)) }
  }
}
