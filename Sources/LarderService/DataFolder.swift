import Platform

/// The folder of the data directory before the server opens it: whether it is one that larderd may write into, and who
/// else has access to it.
struct DataFolder {
  /// What can be in a folder that has no format file yet: what a start leaves that ended before it wrote one, and the
  /// folder that a file system has at its root.
  private static let expectedNames: Set = ["lock", "stores", ".new", lostAndFoundName]
  private static let lostAndFoundName = "lost+found"
  private static let formatName = "format"
  private static let ownerMode: UInt32 = 0o700

  private let path: String
  private let files = LocalFileSystem()

  init(path: String) { self.path = path }

  /// A Boolean value that indicates whether a server has used the folder before.
  private var isFormatted: Bool { (try? files.kind(of: "\(path)/\(Self.formatName)")) ?? nil != nil }

  /// The name of something in the folder that shows that it is not a data directory; nil if there is nothing, or if the
  /// folder can't be read.
  var foreignName: String? {
    guard !isFormatted, let names = try? files.list(path) else { return nil }
    return names.sorted().first { !Self.expectedNames.contains($0) || isFilledLostAndFound($0) }
  }

  private func isFilledLostAndFound(_ name: String) -> Bool {
    guard name == Self.lostAndFoundName else { return false }
    // Only root can look into it.
    return (try? files.list("\(path)/\(name)"))?.isEmpty == false
  }

  /// Takes the access of others to a folder that a server uses for the first time.
  /// - Returns: What is wrong with the access, if something is.
  func protect() -> String? {
    guard let mode = try? files.permissions(of: path), mode & ~Self.ownerMode != 0 else { return nil }
    if isFormatted {
      guard mode & 0o007 != 0 else { return nil }
      return "every user of this machine has access to the data directory; to change that: chmod o= \(path)"
    }
    do throws(SystemError) { try files.setPermissions(of: path, to: Self.ownerMode) } catch {
      return "the data directory can't be made private (\(error)); other users may have access to it"
    }
    return nil
  }
}
