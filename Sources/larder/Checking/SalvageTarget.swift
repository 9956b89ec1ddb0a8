import Platform
import Storage

/// The data directory that is made of what is intact in another one. It has its name when all of it is on the disk.
struct SalvageTarget {
  private let files = LocalFileSystem()
  private let path: String
  let unfinished: String
  let data: DataDirectory

  /// - Parameters:
  ///   - path: absolute; nothing may be there.
  ///   - source: the directory that is copied from.
  init(_ path: String, beside source: String) throws {
    self.path = path
    unfinished = path + ".unfinished"
    guard !path.hasPrefix(source + "/") else {
      throw CommandFailure(.usage, "'\(path)' is in the data directory itself; name another place")
    }
    for taken in [path, unfinished] {
      let kind: FileKind?
      do { kind = try files.kind(of: taken) } catch { throw CommandFailure(.usage, "'\(taken)': \(error)") }
      guard kind == nil else {
        throw CommandFailure(.usage, "'\(taken)' is there already; remove it, or name a directory to make")
      }
    }
    do { data = try DataDirectory.open(unfinished) } catch { throw CommandFailure(.usage, "\(error)") }
  }

  func finish() throws(SystemError) {
    try files.rename(unfinished, to: path)
    try files.syncFolder(folder(of: path))
  }
}
