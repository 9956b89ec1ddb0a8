import Foundation
import Platform

/// A new folder, which is removed together with this object.
package final class TemporaryFolder: Sendable {
  package let path: String

  package init() throws {
    // The path is short, because the path of a Unix socket must not exceed 107 bytes.
    path = NSTemporaryDirectory() + "larder-\(UInt64.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  package var url: URL { URL(fileURLWithPath: path, isDirectory: true) }

  /// Returns the path of a file in the folder.
  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Returns the names in the folder, sorted.
  package func names() throws -> [String] { try LocalFileSystem().list(path).sorted() }

  /// Returns the relative paths of everything inside the folder, sorted.
  package func subpaths() throws -> [String] { try FileManager.default.subpathsOfDirectory(atPath: path).sorted() }

  package func contents(_ name: String) throws -> [UInt8] {
    try Array(Data(contentsOf: URL(fileURLWithPath: file(name))))
  }

  /// Creates a file or replaces its contents.
  package func put(_ name: String, _ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: file(name)))
  }

  package func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: file(name), withDestinationPath: target)
  }
}
