import Foundation

/// A folder that goes, with everything in it, when the last one who uses it lets go of it.
final class TestFolder: Sendable {
  let path: String

  init() throws {
    // A socket's path has at most 107 bytes, and some systems' own temporary folder has a long one.
    path = "/tmp/larder-\(UUID().uuidString.prefix(13))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
