import Glibc
import Platform

/// A disk in memory that keeps what a crash would keep, and fails on purpose. The same seed replays the same.
///
/// What was written and not synced may be lost at a crash, any part of it and in any order, down to sectors of 512 bytes; so may names that
/// were made, changed or removed in a folder that was not synced since. Safe because everything is behind one lock.
package final class SimulatedDisk: FileSystem {
  /// The unit that is written whole or not at all.
  static let sectorByteCount = 512

  /// The calls that can be made to fail.
  package enum Call: String, CaseIterable, Sendable {
    case open, list, kind, makeFolder, rename, remove, removeFolder, syncFolder
    case byteCount, read, write, allocate, truncate, sync
  }

  /// The n-th call of a kind, or the n-th call of any, and what becomes of it.
  package struct Fault: Sendable {
    package var call: Call?
    /// From 1 on, counted from when the fault was set.
    package var number: Int
    package var errno: Int32
    /// Whether all that follow fail, too.
    package var lasts: Bool

    package init(_ call: Call? = nil, number: Int, errno: Int32, lasts: Bool = false) {
      self.call = call
      self.number = number
      self.errno = errno
      self.lasts = lasts
    }
  }

  let state: Lock<DiskState>

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

  package func makeFolder(_ path: String) throws(SystemError) {
    try run(.makeFolder) { (state) throws(SystemError) in try state.makeFolder(path) }
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
    try run(.open) { (state) throws(SystemError) in try state.checkFolder(path) }
    return SimulatedFolder(self, path: path, life: state.withLock { $0.life })
  }
}

/// What tests do to the disk.
extension SimulatedDisk {
  /// Has the power fail and come back: files that are open are gone, and each part of what was not synced is kept or lost.
  package func crash() { state.withLock { $0.crash() } }

  /// Has the process die: files that are open are gone, and nothing is lost.
  package func kill() { state.withLock { $0.kill() } }

  package var fault: Fault? {
    get { state.withLock { $0.fault } }
    set {
      state.withLock { state in
        state.fault = newValue
        state.matchingCalls = 0
      }
    }
  }

  /// How many calls there were in all.
  package var callCount: Int { state.withLock { $0.callCount } }

  /// The most bytes that files may take.
  package var byteLimit: Int {
    get { state.withLock { $0.byteLimit } }
    set { state.withLock { $0.byteLimit = newValue } }
  }

  /// What all files take.
  package var bytesTaken: Int { state.withLock { $0.bytesTaken } }

  /// A file's bytes as they would be read.
  package func contents(_ path: String) -> [UInt8]? { state.withLock { state in state.node(path)?.bytes } }

  /// Puts a file there, on the disk for good.
  package func place(_ path: String, _ bytes: [UInt8]) { state.withLock { $0.place(path, bytes) } }

  /// Puts a folder there and those that it is in, on the disk for good.
  package func placeFolder(_ path: String) { state.withLock { $0.placeFolder(path) } }

  /// Flips one bit of a file, on the disk and for readers.
  package func flip(_ path: String, bit: Int) {
    state.withLock { state in
      guard let node = state.node(path) else { return }
      node.bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      if bit / 8 < node.durable.count { node.durable[bit / 8] ^= 1 << UInt8(bit % 8) }
    }
  }
}

/// An open folder of the disk, which nobody renames meanwhile. It belongs to one life of the machine: after a crash every call fails.
final class SimulatedFolder: Folder {
  private let disk: SimulatedDisk
  private let path: String
  private let life: Int

  init(_ disk: SimulatedDisk, path: String, life: Int) {
    self.disk = disk
    self.path = path
    self.life = life
  }

  func sync() throws(SystemError) {
    try disk.state.withLock { (state) throws(SystemError) in
      guard state.life == life else { throw SystemError(SimulatedDisk.Call.syncFolder.rawValue, errno: EBADF) }
      try state.begin(.syncFolder)
      try state.syncFolder(path)
    }
  }
}

/// An open file of the disk. It belongs to one life of the machine: after a crash every call fails.
final class SimulatedFile: File {
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

  func read(at offset: Int, into room: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    try run(.read) { (_) throws(SystemError) in
      let count = max(0, min(room.count, node.bytes.count - offset))
      guard count > 0 else { return 0 }
      unsafe node.bytes.withUnsafeBytes { bytes in
        unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
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
    try run(.sync) { (_) throws(SystemError) in node.sync() }
  }
}
