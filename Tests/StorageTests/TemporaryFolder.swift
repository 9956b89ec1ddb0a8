import Foundation
import Platform

@testable import Storage

/// A folder for one test, removed with its owner.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "larder-storage-\(UInt32.random(in: 0 ... .max))"
    try LocalFileSystem().createFolder(path)
  }

  deinit { try? LocalFileSystem().removeAll(path) }

  func file(_ name: String) -> String { path + "/" + name }

  /// Returns the names in the folder, sorted.
  func names() throws -> [String] { try LocalFileSystem().list(path).sorted() }

  func contents(_ name: String) throws -> [UInt8] { try LocalFileSystem().open(file(name), .reading).contents() }

  /// Creates a file or replaces its contents.
  func put(_ name: String, _ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: file(name))) }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: file(name), withDestinationPath: target)
  }
}
