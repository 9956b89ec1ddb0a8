import Glibc
import Platform

/// A file or a folder, whatever its names: what a process sees, what is on disk, and the changes in between.
///
/// Safe because it is only used under the disk's lock.
final class DiskNode: @unchecked Sendable {
  fileprivate enum Change {
    case write(offset: Int, [UInt8])
    case size(Int)
  }

  let isFolder: Bool
  /// The contents of a file.
  private(set) var bytes: [UInt8]
  private var durable: [UInt8]
  private var changes: [Change] = []
  /// The contents of a folder.
  fileprivate var names: [String: DiskNode] = [:]
  fileprivate var durableNames: [String: DiskNode] = [:]

  /// Creates a file whose contents are durable, or an empty folder.
  init(isFolder: Bool = false, _ bytes: [UInt8] = []) {
    (self.isFolder, self.bytes, durable) = (isFolder, bytes, bytes)
  }

  fileprivate func change(_ change: Change) {
    Self.apply(change, to: &bytes)
    changes.append(change)
  }

  private static func apply(_ change: Change, to bytes: inout [UInt8]) {
    switch change {
    case .size(let count): resize(&bytes, to: count)
    case .write(let offset, let written):
      if offset + written.count > bytes.count { resize(&bytes, to: offset + written.count) }
      bytes.replaceSubrange(offset..<offset + written.count, with: written)
    }
  }

  private static func resize(_ bytes: inout [UInt8], to count: Int) {
    if count < bytes.count {
      bytes.removeLast(bytes.count - count)
    } else {
      bytes += [UInt8](repeating: 0, count: count - bytes.count)
    }
  }

  /// Flips a bit, on disk and for readers.
  func flip(bit: Int) {
    bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    if bit / 8 < durable.count { durable[bit / 8] ^= 1 << UInt8(bit % 8) }
  }

  func sync() {
    for change in changes { Self.apply(change, to: &durable) }
    changes = []
  }

  /// Writes some sectors of each change to the disk and forgets the others, although readers go on to see them. No
  /// later sync writes them.
  func failToSync(_ random: inout SeededGenerator) {
    for change in changes.shuffled(using: &random) {
      // Half of the changes are kept as a whole or not at all.
      let outcome = Int.random(in: 0..<4, using: &random)
      if outcome == 0 { continue }
      switch change {
      case .size: Self.apply(change, to: &durable)
      case .write(let offset, let bytes):
        var place = offset
        while place < offset + bytes.count {
          let sector = SimulatedDisk.sectorByteCount
          let end = min(offset + bytes.count, (place / sector + 1) * sector)
          if outcome < 3 || Bool.random(using: &random) {
            let kept = Array(bytes[(place - offset)..<(end - offset)])
            Self.apply(.write(offset: place, kept), to: &durable)
          } else if Int.random(in: 0..<4, using: &random) == 0 {
            // Keep only a prefix.
            break
          }
          place = end
        }
      }
    }
    changes = []
  }

  /// Keeps some sectors of each change, in any order.
  func crash(_ random: inout SeededGenerator) {
    failToSync(&random)
    bytes = durable
  }
}

/// The contents of a disk. Owned by a `SimulatedDisk` and used under its lock.
struct DiskState: Sendable {
  /// An unsynced change to the names in a folder.
  private struct NameChange: Sendable {
    let folder: DiskNode
    let names: [(name: String, node: DiskNode?)]

    func apply(to table: inout [String: DiskNode]) {
      for (name, node) in names { table[name] = node }
    }
  }

  private var random: SeededGenerator
  private let root = DiskNode(isFolder: true)
  private var nameChanges: [NameChange] = []
  /// The number of restarts of the machine.
  private(set) var life = 0
  var injectedFailure: SimulatedDisk.InjectedFailure?
  private(set) var callCount = 0
  var byteLimit = Int.max

  init(random: SeededGenerator) { self.random = random }

  var bytesTaken: Int {
    files().reduce(0) { $0 + $1.bytes.count }
  }

  /// Returns all files, each of them once, in the order of their paths.
  private func files() -> [DiskNode] {
    var (files, seen): ([DiskNode], Set<ObjectIdentifier>) = ([], [])
    func visit(_ node: DiskNode) {
      guard seen.insert(ObjectIdentifier(node)).inserted else { return }
      if !node.isFolder { files.append(node) }
      for (_, child) in node.names.sorted(by: { $0.key < $1.key }) { visit(child) }
    }
    visit(root)
    return files
  }

  private func hasRoom(for byteCount: Int, in node: DiskNode) -> Bool {
    byteLimit == .max || bytesTaken + byteCount - node.bytes.count <= byteLimit
  }

  mutating func begin(_ call: SimulatedDisk.Call) throws(SystemError) {
    callCount += 1
    try injectedFailure?.check(call)
  }

  // MARK: Names

  func node(_ path: String) -> DiskNode? {
    var names: [Substring] = []
    for name in path.split(separator: "/") { if name == ".." { names.removeLast() } else { names.append(name) } }
    return names.reduce(root) { (node: DiskNode?, name) in node?.names[String(name)] }
  }

  private func folder(_ path: String, for call: String) throws(SystemError) -> DiskNode {
    guard let node = node(path), node.isFolder else { throw SystemError(call, errno: ENOENT) }
    return node
  }

  /// Returns the folder of a path and the name in it.
  private func place(_ path: String, for call: String) throws(SystemError) -> (folder: DiskNode, name: String) {
    let path = path.hasSuffix("/") ? path.dropLast() : path[...]
    let slash = path.lastIndex(of: "/") ?? path.startIndex
    return (try folder(String(path[..<slash]), for: call), String(path[slash...].dropFirst()))
  }

  private mutating func change(_ folder: DiskNode, _ names: [(name: String, node: DiskNode?)]) {
    let change = NameChange(folder: folder, names: names)
    change.apply(to: &folder.names)
    nameChanges.append(change)
  }

  mutating func open(_ path: String, _ access: FileAccess) throws(SystemError) -> DiskNode {
    let (folder, name) = try place(path, for: "open")
    if let node = folder.names[name] {
      if access == .creating { throw SystemError("open", errno: EEXIST) }
      if node.isFolder { throw SystemError("open", errno: EISDIR) }
      return node
    }
    guard access == .creating else { throw SystemError("open", errno: ENOENT) }
    let node = DiskNode()
    change(folder, [(name, node)])
    return node
  }

  func list(_ path: String) throws(SystemError) -> [String] { try folder(path, for: "list").names.keys.sorted() }

  func kind(of path: String) -> FileKind? {
    node(path).map { $0.isFolder ? .folder : .file(byteCount: $0.bytes.count) }
  }

  mutating func createFolder(_ path: String) throws(SystemError) {
    let (folder, name) = try place(path, for: "makeFolder")
    guard folder.names[name] == nil else { throw SystemError("makeFolder", errno: EEXIST) }
    change(folder, [(name, DiskNode(isFolder: true))])
  }

  mutating func rename(_ path: String, to other: String) throws(SystemError) {
    let (old, new) = (try place(path, for: "rename"), try place(other, for: "rename"))
    precondition(old.folder === new.folder, "\(path) is renamed to another folder, \(other)")
    guard let node = old.folder.names[old.name] else { throw SystemError("rename", errno: ENOENT) }
    change(old.folder, [(old.name, nil), (new.name, node)])
  }

  mutating func remove(_ path: String) throws(SystemError) {
    let (folder, name) = try place(path, for: "remove")
    guard folder.names[name]?.isFolder == false else { throw SystemError("remove", errno: ENOENT) }
    change(folder, [(name, nil)])
  }

  mutating func removeFolder(_ path: String) throws(SystemError) {
    guard try list(path).isEmpty else { throw SystemError("removeFolder", errno: ENOTEMPTY) }
    let (folder, name) = try place(path, for: "removeFolder")
    change(folder, [(name, nil)])
  }

  func openFolder(_ path: String) throws(SystemError) -> DiskNode { try folder(path, for: "open") }

  mutating func sync(folder: DiskNode) {
    for change in nameChanges where change.folder === folder { change.apply(to: &folder.durableNames) }
    nameChanges.removeAll { $0.folder === folder }
  }

  // MARK: Files

  mutating func write(_ bytes: [UInt8], at offset: Int, to node: DiskNode) throws(SystemError) {
    let end = offset + bytes.count
    guard end <= node.bytes.count || hasRoom(for: end, in: node) else { throw SystemError("write", errno: ENOSPC) }
    node.change(.write(offset: offset, bytes))
  }

  mutating func allocate(_ byteCount: Int, in node: DiskNode) throws(SystemError) {
    guard byteCount > node.bytes.count else { return }
    guard hasRoom(for: byteCount, in: node) else { throw SystemError("allocate", errno: ENOSPC) }
    truncate(node, to: byteCount)
  }

  mutating func truncate(_ node: DiskNode, to byteCount: Int) { node.change(.size(byteCount)) }

  mutating func failToSync(_ node: DiskNode) { node.failToSync(&random) }

  // MARK: Control

  mutating func place(_ path: String, _ bytes: [UInt8]) {
    let slash = path.lastIndex(of: "/") ?? path.startIndex
    let (folder, name) = (placeFolder(String(path[..<slash])), String(path[slash...].dropFirst()))
    let node = DiskNode(bytes)
    (folder.names[name], folder.durableNames[name]) = (node, node)
  }

  @discardableResult
  mutating func placeFolder(_ path: String) -> DiskNode {
    var folder = root
    for name in path.split(separator: "/").map(String.init) {
      let node = folder.names[name] ?? DiskNode(isFolder: true)
      (folder.names[name], folder.durableNames[name]) = (node, node)
      folder = node
    }
    return folder
  }

  mutating func kill() {
    life += 1
    injectedFailure = nil
  }

  /// Keeps a random prefix of the name changes, in order, as a journaling file system does, or any of them. Each file
  /// loses changes independently.
  mutating func crash(reordersNames: Bool) {
    kill()
    for change in nameChanges {
      // The changes are kept up to a random point.
      guard Int.random(in: 0..<3, using: &random) > 0 else {
        if reordersNames { continue }
        break
      }
      change.apply(to: &change.folder.durableNames)
    }
    nameChanges = []
    revert(root)
    for file in files() { file.crash(&random) }
  }

  /// Makes a process see the names that are on disk.
  private func revert(_ folder: DiskNode) {
    folder.names = folder.durableNames
    for node in folder.names.values where node.isFolder { revert(node) }
  }
}
