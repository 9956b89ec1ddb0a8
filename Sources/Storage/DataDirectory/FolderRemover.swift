import Dispatch
import Glibc
import Platform
import Synchronization

/// Removes folders with many files on a thread of its own, so that no caller waits for it. What it hasn't removed when
/// the process ends, or can't remove, is left for the next start.
final class FolderRemover: Sendable {
  /// The number of files that are removed at once. A pause of the same length follows, so that the disk has time for
  /// commits.
  private static let filesPerSlice = 64

  private let fileSystem: any FileSystem
  private let queue = DispatchQueue(label: "larder.removal", qos: .utility)
  private let isStopping = Atomic<Bool>(false)

  init(_ fileSystem: any FileSystem) { self.fileSystem = fileSystem }

  /// Removes a folder with all its contents, after those that were added before.
  func remove(_ path: String) {
    queue.async { [self] in
      var slice = Slice()
      try? remove(path, &slice)
    }
  }

  /// Returns when all folders are removed.
  func wait() { queue.sync {} }

  /// Returns when nothing is being removed any more.
  func stop() {
    isStopping.store(true, ordering: .relaxed)
    wait()
  }

  private struct Slice {
    var count = 0
    var start = monotonicNanoseconds()
  }

  private func remove(_ path: String, _ slice: inout Slice) throws(SystemError) {
    switch try fileSystem.kind(of: path) {
    case nil: return
    case .folder?:
      for name in try fileSystem.list(path) {
        if isStopping.load(ordering: .relaxed) { return }
        try remove(path + "/" + name, &slice)
      }
      if isStopping.load(ordering: .relaxed) { return }
      try fileSystem.removeFolder(path)
    case .file?, .other?:
      try fileSystem.remove(path)
      slice.count += 1
      if slice.count == Self.filesPerSlice { pause(&slice) }
    }
  }

  private func pause(_ slice: inout Slice) {
    usleep(UInt32(min(20_000, (monotonicNanoseconds() - slice.start) / 1_000)))
    slice = Slice()
  }
}
