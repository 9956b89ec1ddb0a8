import Platform

/// The folder of a directory store, and the names in it that are no entry's.
struct DirectoryFolder: Sendable {
  /// Whoever opens a folder outside a data directory locks it by a file of this name.
  static let lockName = ".lock"
  /// What a file is written as before it gets its name. One thread writes, so there is one.
  static let temporaryName = ".new"

  let fileSystem: any FileSystem
  let path: String

  func path(_ name: String) -> String { path + "/" + name }

  var temporaryPath: String { path(Self.temporaryName) }
}
