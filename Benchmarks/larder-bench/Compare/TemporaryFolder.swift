import Dispatch
import Foundation
import Synchronization

/// A folder that is removed with its contents.
final class TemporaryFolder: Sendable {
  let path: String
  private let count = Atomic(0)

  /// - Parameter folder: The parent folder; nil for the system's temporary folder.
  init(in folder: String? = nil) throws {
    path = (folder.map { $0 + "/" } ?? NSTemporaryDirectory()) + "larder-bench-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// Returns a new path in the folder.
  func makePath(_ name: String) -> String {
    "\(path)/\(count.add(1, ordering: .relaxed).newValue)-\(name)"
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }

  deinit { remove() }
}

/// A handler of SIGINT and SIGTERM that kills the servers and removes their folders.
struct SignalCleanup {
  private let sources: [any DispatchSourceSignal]

  init(_ folders: TemporaryFolder...) {
    sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        RunningServer.killAll()
        for folder in folders { folder.remove() }
        exit(128 + number)
      }
      source.activate()
      return source
    }
  }

  func cancel() {
    for source in sources { source.cancel() }
    for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
  }
}
