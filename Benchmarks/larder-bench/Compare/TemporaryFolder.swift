import Foundation
import Synchronization

/// A folder that is removed with everything in it.
final class TemporaryFolder: Sendable {
  let path: String
  private let count = Atomic(0)

  /// - Parameter folder: what it is made in; nil for where the system has such folders.
  init(in folder: String? = nil) throws {
    path = (folder.map { $0 + "/" } ?? NSTemporaryDirectory()) + "larder-bench-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// A path that was not given out before.
  func makePath(_ name: String) -> String {
    "\(path)/\(count.add(1, ordering: .relaxed).newValue)-\(name)"
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }

  deinit { remove() }
}
