import Glibc
import Platform

/// A disk in memory that keeps what a real disk would keep in a crash, and fails on purpose. The same seed replays the
/// same run.
///
/// A crash may lose any part of what was written and not synced, in any order, down to sectors of 512 bytes. It may
/// also lose changes to the names in a folder that was not synced since. After a sync of a file has failed, readers go
/// on to see what was written, but no later sync makes it durable, as in Linux. Safe because everything is behind one
/// lock.
package final class SimulatedDisk: FileSystem {
  /// The unit that is written atomically.
  static let sectorByteCount = 512

  /// The calls that can be made to fail. Errors of syncs are recognized by the names of the system calls.
  package enum Call: String, CaseIterable, Sendable {
    case open, list, kind, createFolder, rename, remove, removeFolder
    case syncFolder = "fsync"
    case byteCount, read, write, allocate, truncate
    case sync = "fdatasync"
  }

  /// A failure of the n-th call of a kind, or of the n-th call of any kind.
  package struct InjectedFailure: Sendable {
    private let call: Call?
    private let number: Int
    private let errno: Int32
    private let isPersistent: Bool
    /// The number of calls so far that the failure may apply to.
    private var matchingCalls = 0

    /// - Parameters:
    ///   - number: The number of the call, from 1 on, counted since the failure was injected.
    ///   - isPersistent: Whether all later calls fail, too.
    package init(_ call: Call? = nil, number: Int, errno: Int32, isPersistent: Bool = false) {
      self.call = call
      self.number = number
      self.errno = errno
      self.isPersistent = isPersistent
    }

    mutating func check(_ call: Call) throws(SystemError) {
      guard self.call == nil || self.call == call else { return }
      matchingCalls += 1
      if matchingCalls == number || isPersistent && matchingCalls > number {
        throw SystemError(call.rawValue, errno: errno)
      }
    }
  }

  private let state: Lock<DiskState>

  package init(seed: UInt64) { state = Lock(DiskState(random: SeededGenerator(seed: seed))) }

  private func run<Result: Sendable>(
    _ call: Call, _ body: (inout DiskState) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try state.withLock { (state) throws(SystemError) -> Result in
      try state.begin(call)
      return try body(&state)
    }
  }

  package func open(_ path: String, _ access: FileAccess) throws(SystemError) -> any File {
    let node = try run(.open) { (state) throws(SystemError) in try state.open(path, access) }
    return SimulatedFile(self, node: node, life: state.withLock { $0.life })
  }

  package func list(_ folder: String) throws(SystemError) -> [String] {
    try run(.list) { (state) throws(SystemError) in try state.list(folder) }
  }

  package func kind(of path: String) throws(SystemError) -> FileKind? {
    try run(.kind) { (state) throws(SystemError) in state.kind(of: path) }
  }

  package func createFolder(_ path: String) throws(SystemError) {
    try run(.createFolder) { (state) throws(SystemError) in try state.createFolder(path) }
  }

  package func rename(_ path: String, to other: String) throws(SystemError) {
    try run(.rename) { (state) throws(SystemError) in try state.rename(path, to: other) }
  }

  package func remove(_ path: String) throws(SystemError) {
    try run(.remove) { (state) throws(SystemError) in try state.remove(path) }
  }

  package func removeFolder(_ path: String) throws(SystemError) {
    try run(.removeFolder) { (state) throws(SystemError) in try state.removeFolder(path) }
  }

  package func openFolder(_ path: String) throws(SystemError) -> any Folder {
    let node = try run(.open) { (state) throws(SystemError) in try state.openFolder(path) }
    return SimulatedFolder(self, node: node, life: state.withLock { $0.life })
  }
}

// MARK: Control by tests

extension SimulatedDisk {
  /// Simulates a power cut: open files become invalid, and each part of what was not synced is kept or lost.
  /// - Parameter reordersNames: Whether each change of a name is kept or lost by itself. Otherwise, as on a journaling
  ///   file system, the changes are kept up to a random one.
  package func crash(reordersNames: Bool = false) { state.withLock { $0.crash(reordersNames: reordersNames) } }

  /// Simulates the end of the process: open files become invalid, and nothing is lost.
  package func kill() { state.withLock { $0.kill() } }

  package var injectedFailure: InjectedFailure? {
    get { state.withLock { $0.injectedFailure } }
    set { state.withLock { $0.injectedFailure = newValue } }
  }

  /// The number of all calls so far.
  package var callCount: Int { state.withLock { $0.callCount } }

  /// The size of the disk in bytes.
  package var byteLimit: Int {
    get { state.withLock { $0.byteLimit } }
    set { state.withLock { $0.byteLimit = newValue } }
  }

  /// The size of all files in bytes.
  package var bytesTaken: Int { state.withLock { $0.bytesTaken } }

  /// Returns a file's bytes as a reader would see them; nil if there is no such file.
  package func contents(_ path: String) -> [UInt8]? { state.withLock { state in state.node(path)?.bytes } }

  /// Creates a durable file.
  package func place(_ path: String, _ bytes: [UInt8]) { state.withLock { $0.place(path, bytes) } }

  /// Creates a durable folder and its parents.
  package func placeFolder(_ path: String) { state.withLock { _ = $0.placeFolder(path) } }

  /// Flips one bit of a file, on disk and for readers.
  package func flip(_ path: String, bit: Int) {
    state.withLock { state in state.node(path)?.flip(bit: bit) }
  }
}

// MARK: Open files and folders

extension SimulatedDisk {
  /// An open folder of the disk. It belongs to one life of the machine: after a crash, every call fails.
  private final class SimulatedFolder: Folder {
    private let disk: SimulatedDisk
    private let node: DiskNode
    private let life: Int

    init(_ disk: SimulatedDisk, node: DiskNode, life: Int) {
      self.disk = disk
      self.node = node
      self.life = life
    }

    func sync() throws(SystemError) {
      try disk.state.withLock { (state) throws(SystemError) in
        guard state.life == life else { throw SystemError(SimulatedDisk.Call.syncFolder.rawValue, errno: EBADF) }
        try state.begin(.syncFolder)
        state.sync(folder: node)
      }
    }
  }

  /// An open file of the disk. It belongs to one life of the machine: after a crash, every call fails.
  private final class SimulatedFile: File {
    private let disk: SimulatedDisk
    private let node: DiskNode
    private let life: Int

    init(_ disk: SimulatedDisk, node: DiskNode, life: Int) {
      self.disk = disk
      self.node = node
      self.life = life
    }

    private func run<Result: Sendable>(
      _ call: SimulatedDisk.Call, _ body: (inout DiskState) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
      try disk.state.withLock { (state) throws(SystemError) -> Result in
        guard state.life == life else { throw SystemError(call.rawValue, errno: EBADF) }
        try state.begin(call)
        return try body(&state)
      }
    }

    func byteCount() throws(SystemError) -> Int {
      try run(.byteCount) { (_) throws(SystemError) in node.bytes.count }
    }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
      try run(.read) { (_) throws(SystemError) in
        let count = max(0, min(buffer.count, node.bytes.count - offset))
        guard count > 0 else { return 0 }
        unsafe node.bytes.withUnsafeBytes { bytes in
          unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
        }
        return count
      }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(SystemError) {
      let bytes = unsafe Array(bytes)
      try run(.write) { (state) throws(SystemError) in try state.write(bytes, at: offset, to: node) }
    }

    func allocate(_ byteCount: Int) throws(SystemError) {
      try run(.allocate) { (state) throws(SystemError) in try state.allocate(byteCount, in: node) }
    }

    func truncate(to byteCount: Int) throws(SystemError) {
      try run(.truncate) { (state) throws(SystemError) in state.truncate(node, to: byteCount) }
    }

    func sync() throws(SystemError) {
      try disk.state.withLock { (state) throws(SystemError) in
        guard state.life == life else { throw SystemError(SimulatedDisk.Call.sync.rawValue, errno: EBADF) }
        do throws(SystemError) { try state.begin(.sync) } catch {
          state.failToSync(node)
          throw error
        }
        node.sync()
      }
    }
  }
}
