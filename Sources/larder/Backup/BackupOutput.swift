import Platform

/// The destination of a backup: a file that appears complete or not at all, or standard output.
///
/// The bytes go to `NAME.tmp`, which `commit` renames once all of them are on disk. Owned by the task that backs up.
final class BackupOutput {
  private let files = LocalFileSystem()
  /// The absolute path of the file; nil for standard output.
  private let path: String?
  private var file: (any File)?
  private var output = Output()
  private(set) var byteCount = 0

  private var temporaryPath: String { path! + ".tmp" }

  /// - Parameter path: The file's path, or `-` for standard output.
  init(path: String) throws {
    guard path != "-" else {
      if Output.isTerminal {
        throw CommandFailure(.usage, "a backup can't be written to a terminal; name a file, or pipe the output")
      }
      self.path = nil
      return
    }
    self.path = absolutePath(path)
    try rethrowingErrors {
      switch try files.kind(of: self.path!) {
      case nil, .file?: break
      case .folder?, .other?:
        throw CommandFailure(.usage, "'\(path)' is not a regular file; name one, or use - and a pipe")
      }
      if try files.kind(of: temporaryPath) != nil { try files.remove(temporaryPath) }
      file = try files.open(temporaryPath, .creating)
    }
  }

  func write(_ bytes: [UInt8]) throws {
    if let file {
      let offset = byteCount
      try rethrowingErrors { try unsafe bytes.withUnsafeBytes { try unsafe file.write($0, at: offset) } }
    } else {
      output.bytes = bytes
      try output.flush()
    }
    byteCount += bytes.count
  }

  /// Syncs the file and gives it its final name.
  func commit() throws {
    guard let file, let path else { return }
    try rethrowingErrors {
      try file.sync()
      try files.rename(temporaryPath, to: path)
      try files.syncFolder(folder(of: path))
    }
    self.file = nil
  }

  /// Removes the unfinished file. Has no effect after `commit`.
  func discard() {
    if file != nil { try? files.remove(temporaryPath) }
    file = nil
  }

  private func rethrowingErrors(_ body: () throws -> Void) throws {
    do { try body() } catch let error as SystemError {
      throw CommandFailure(.usage, "can't write '\(path!)': \(error); no backup was made")
    }
  }
}
