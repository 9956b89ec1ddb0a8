import Foundation

/// A folder with a path short enough for sockets.
final class TestFolder: Sendable {
  let path: String

  init() throws {
    // A socket's path has at most 107 bytes, and some systems' own temporary folder has a long one.
    path = "/tmp/larder-\(UUID().uuidString.prefix(13))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  /// Removes the folder and everything in it, if it is there.
  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
