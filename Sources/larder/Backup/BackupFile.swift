import Platform

/// Where a backup is written: a file that is there whole or not at all, or standard output.
///
/// The bytes go into a file beside it, `NAME.tmp`, which takes its name once all of it is on the disk.
final class BackupFile {
  private let files = LocalFileSystem()
  /// Nil for standard output.
  private let path: String?
  private var file: (any File)?
  private var output = Output()
  /// How many bytes were written.
  private(set) var byteCount = 0

  private var temporaryPath: String { path! + ".tmp" }

  /// - Parameter path: `-` for standard output.
  init(path: String) throws {
    guard path != "-" else {
      if Output.isTerminal {
        throw CommandFailure(.usage, "a backup is no text for a terminal; name a file, or send it through a pipe")
      }
      self.path = nil
      return
    }
    self.path = absolutePath(path)
    try call {
      switch try files.kind(of: self.path!) {
      case nil, .file?: break
      case .folder?, .other?: throw CommandFailure(.usage, "'\(path)' is no regular file; name one, or - for a pipe")
      }
      if try files.kind(of: temporaryPath) != nil { try files.remove(temporaryPath) }
      file = try files.open(temporaryPath, .making)
    }
  }

  func write(_ bytes: [UInt8]) throws {
    if let file {
      let place = byteCount
      try call { try unsafe bytes.withUnsafeBytes { try unsafe file.write($0, at: place) } }
    } else {
      output.bytes = bytes
      try output.flush()
    }
    byteCount += bytes.count
  }

  /// Has the file be on the disk, under its name.
  func finish() throws {
    guard let file, let path else { return }
    try call {
      try file.sync()
      try files.rename(temporaryPath, to: path)
      try files.syncFolder(folder(of: path))
    }
    self.file = nil
  }

  /// Removes what was written; of no use after `finish`.
  func giveUp() {
    if file != nil { try? files.remove(temporaryPath) }
    file = nil
  }

  private func call(_ body: () throws -> Void) throws {
    do { try body() } catch let error as SystemError {
      throw CommandFailure(.usage, "can't write '\(path!)': \(error); there is no new backup")
    }
  }
}

/// A path that does not depend on where the process is.
func absolutePath(_ path: String) -> String {
  var path = path.hasPrefix("/") ? path : currentFolder() + "/" + path
  while path.count > 1, path.hasSuffix("/") { path.removeLast() }
  return path
}

/// The folder that has the last name of an absolute path.
func folder(of path: String) -> String {
  let name = path.lastIndex(of: "/")!
  return name == path.startIndex ? "/" : String(path[..<name])
}
