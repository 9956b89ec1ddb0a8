import Dispatch
import Platform

/// A file system whose disk stalls when a test says so: calls on what is in a folder wait until the test lets them
/// continue, one by one or all of them. Every call that waits has a thread of its own.
package final class StallingFiles: FileSystem {
  private struct State {
    /// The folder whose disk stalls; nil if no disk does.
    var folder: String?
    var hidesCache = false
    var waiting: [DispatchSemaphore] = []
  }

  private let files: any FileSystem
  private let state = Lock(State())

  package init(_ files: any FileSystem = LocalFileSystem()) { self.files = files }

  // MARK: Control by tests

  /// Makes all calls on a folder, and on everything in it, wait from now on.
  package func stall(_ folder: String) { state.withLock { $0.folder = folder } }

  /// Ends the stall and lets all calls continue that wait.
  package func resume() {
    let waiting = state.withLock { state in
      defer { state = State() }
      return state.waiting
    }
    for call in waiting { call.signal() }
  }

  /// Whether all that is read has to be read from the disk.
  package var hidesCache: Bool {
    get { state.withLock { $0.hidesCache } }
    set { state.withLock { $0.hidesCache = newValue } }
  }

  /// The number of calls that wait.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Lets one of the calls continue that wait, by its position in the order of their arrival.
  package func release(_ position: Int) { state.withLock { $0.waiting.remove(at: position) }.signal() }

  // MARK: Calls

  private func hidesCache(of path: String) -> Bool {
    state.withLock { state in state.hidesCache || state.folder.map { path.hasPrefix($0) } ?? false }
  }

  private func wait(_ path: String) {
    let call = state.withLock { state -> DispatchSemaphore? in
      guard let folder = state.folder, path.hasPrefix(folder) else { return nil }
      let call = DispatchSemaphore(value: 0)
      state.waiting.append(call)
      return call
    }
    call?.wait()
  }

  package func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    wait(path)
    return StallingFile(try files.open(path, access), path, self)
  }

  package func list(_ folder: String) throws(SystemError) -> [String] {
    wait(folder)
    return try files.list(folder)
  }

  package func kind(of path: String) throws(SystemError) -> FileKind? {
    wait(path)
    return try files.kind(of: path)
  }

  package func createFolder(_ path: String) throws(SystemError) {
    wait(path)
    try files.createFolder(path)
  }

  package func rename(_ path: String, to other: String) throws(SystemError) {
    wait(path)
    try files.rename(path, to: other)
  }

  package func remove(_ path: String) throws(SystemError) {
    wait(path)
    try files.remove(path)
  }

  package func removeFolder(_ path: String) throws(SystemError) {
    wait(path)
    try files.removeFolder(path)
  }

  package func openFolder(_ path: String) throws(SystemError) -> any Folder {
    wait(path)
    return StallingFolder(try files.openFolder(path), path, self)
  }

  private final class StallingFolder: Folder {
    private let folder: any Folder
    private let path: String
    private let disk: StallingFiles

    init(_ folder: any Folder, _ path: String, _ disk: StallingFiles) {
      self.folder = folder
      self.path = path
      self.disk = disk
    }

    func sync() throws(SystemError) {
      disk.wait(path)
      try folder.sync()
    }
  }

  private final class StallingFile: File {
    private let file: any File
    private let path: String
    private let disk: StallingFiles

    init(_ file: any File, _ path: String, _ disk: StallingFiles) {
      self.file = file
      self.path = path
      self.disk = disk
    }

    deinit { disk.wait(path) }

    func byteCount() throws(SystemError) -> Int {
      disk.wait(path)
      return try file.byteCount()
    }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
      disk.wait(path)
      return unsafe try file.read(at: offset, into: buffer)
    }

    func readFromCache(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
      disk.hidesCache(of: path) ? 0 : unsafe file.readFromCache(at: offset, into: buffer)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
      disk.wait(path)
      unsafe try file.write(bytes, at: offset)
    }

    func allocate(_ byteCount: Int) throws(SystemError) {
      disk.wait(path)
      try file.allocate(byteCount)
    }

    func truncate(to byteCount: Int) throws(SystemError) {
      disk.wait(path)
      try file.truncate(to: byteCount)
    }

    func sync() throws(SystemError) {
      disk.wait(path)
      try file.sync()
    }
  }
}
