import Glibc
import Platform

/// A file, whatever its names: what readers see, what is on disk, and the changes in between.
///
/// Safe because it is only used under the disk's lock.
final class DiskNode: @unchecked Sendable {
  fileprivate enum Change {
    case write(offset: Int, [UInt8])
    case size(Int)
  }

  var bytes: [UInt8] = []
  var durable: [UInt8] = []
  fileprivate var changes: [Change] = []
  let isFolder: Bool

  init(isFolder: Bool = false) { self.isFolder = isFolder }

  func sync() {
    durable = bytes
    changes = []
  }

  /// Keeps some sectors of each change, in any order, as a crash does.
  func crash(_ random: inout SeededGenerator) {
    var result = durable
    for change in changes.shuffled(using: &random) {
      // Half of the changes are kept as a whole or not at all.
      let outcome = Int.random(in: 0..<4, using: &random)
      if outcome == 0 { continue }
      switch change {
      case .size(let count): Self.resize(&result, to: count)
      case .write(let offset, let bytes):
        var place = offset
        while place < offset + bytes.count {
          let sector = SimulatedDisk.sectorByteCount
          let end = min(offset + bytes.count, (place / sector + 1) * sector)
          if outcome < 3 || Bool.random(using: &random) {
            if end > result.count { Self.resize(&result, to: end) }
            result.replaceSubrange(place..<end, with: bytes[(place - offset)..<(end - offset)])
          } else if outcome == 3, Int.random(in: 0..<4, using: &random) == 0 {
            // Keep only a prefix.
            break
          }
          place = end
        }
      }
    }
    bytes = result
    sync()
  }

  static func resize(_ bytes: inout [UInt8], to count: Int) {
    if count < bytes.count {
      bytes.removeLast(bytes.count - count)
    } else {
      bytes.append(contentsOf: repeatElement(0, count: count - bytes.count))
    }
  }
}

/// The contents of a disk. Owned by a `SimulatedDisk` and used under its lock.
struct DiskState: Sendable {
  /// An unsynced change to the names in a folder.
  private struct NameChange: Sendable {
    var folder: String
    var names: [(path: String, node: DiskNode?)]
    /// The old and new path of a renamed folder, which change all paths in it.
    var moved: (from: String, to: String)?

    func apply(to table: inout [String: DiskNode]) {
      for (path, node) in names { table[path] = node }
      guard let moved else { return }
      for path in table.keys where path.hasPrefix(moved.from + "/") {
        table[moved.to + path.dropFirst(moved.from.count)] = table.removeValue(forKey: path)
      }
    }
  }

  private var random: SeededGenerator
  private var names: [String: DiskNode] = ["": DiskNode(isFolder: true)]
  private var durableNames: [String: DiskNode] = [:]
  private var nameChanges: [NameChange] = []
  /// The number of restarts of the machine.
  private(set) var life = 0
  var injectedFailure: SimulatedDisk.InjectedFailure?
  private(set) var callCount = 0
  var byteLimit = Int.max

  init(random: SeededGenerator) {
    self.random = random
    durableNames = names
  }

  var bytesTaken: Int {
    var seen: Set<ObjectIdentifier> = []
    return names.values.reduce(0) { seen.insert(ObjectIdentifier($1)).inserted ? $0 + $1.bytes.count : $0 }
  }

  private func hasRoom(for byteCount: Int, in node: DiskNode) -> Bool {
    byteLimit == .max || bytesTaken + byteCount - node.bytes.count <= byteLimit
  }

  mutating func begin(_ call: SimulatedDisk.Call) throws(SystemError) {
    callCount += 1
    try injectedFailure?.check(call)
  }

  func node(_ path: String) -> DiskNode? { names[path] }

  private static func parent(_ path: String) -> String {
    String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
  }

  private mutating func change(_ path: String, _ pairs: [(path: String, node: DiskNode?)]) {
    for pair in pairs { names[pair.path] = pair.node }
    nameChanges.append(NameChange(folder: Self.parent(path), names: pairs))
  }

  mutating func open(_ path: String, _ access: FileAccess) throws(SystemError) -> DiskNode {
    if let node = names[path] {
      if access == .creating { throw SystemError("open", errno: EEXIST) }
      if node.isFolder { throw SystemError("open", errno: EISDIR) }
      return node
    }
    guard access == .creating, names[Self.parent(path)]?.isFolder == true else {
      throw SystemError("open", errno: ENOENT)
    }
    let node = DiskNode()
    change(path, [(path, node)])
    return node
  }

  func list(_ folder: String) throws(SystemError) -> [String] {
    guard names[folder]?.isFolder == true else { throw SystemError("list", errno: ENOENT) }
    return names.keys.filter { !$0.isEmpty && Self.parent($0) == folder }.map { String($0.dropFirst(folder.count + 1)) }
      .sorted()
  }

  func kind(of path: String) -> FileKind? {
    names[path].map { $0.isFolder ? .folder : .file(byteCount: $0.bytes.count) }
  }

  mutating func createFolder(_ path: String) throws(SystemError) {
    guard names[path] == nil else { throw SystemError("makeFolder", errno: EEXIST) }
    change(path, [(path, DiskNode(isFolder: true))])
  }

  mutating func rename(_ path: String, to other: String) throws(SystemError) {
    guard let node = names[path] else { throw SystemError("rename", errno: ENOENT) }
    guard node.isFolder else { return change(path, [(path, nil), (other, node)]) }
    precondition(
      !nameChanges.contains { "\($0.folder)/".hasPrefix("\(path)/") }, "\(path) has names that are not synced")
    let change = NameChange(
      folder: Self.parent(path), names: [(path, nil), (other, node)], moved: (from: path, to: other))
    change.apply(to: &names)
    nameChanges.append(change)
  }

  mutating func remove(_ path: String) throws(SystemError) {
    guard let node = names[path], !node.isFolder else { throw SystemError("remove", errno: ENOENT) }
    change(path, [(path, nil)])
  }

  mutating func removeFolder(_ path: String) throws(SystemError) {
    guard names[path]?.isFolder == true else { throw SystemError("removeFolder", errno: ENOENT) }
    guard try list(path).isEmpty else { throw SystemError("removeFolder", errno: ENOTEMPTY) }
    change(path, [(path, nil)])
  }

  func checkFolder(_ path: String) throws(SystemError) {
    guard names[path]?.isFolder == true else { throw SystemError("open", errno: ENOENT) }
  }

  mutating func syncFolder(_ path: String) throws(SystemError) {
    guard names[path]?.isFolder == true else { throw SystemError("syncFolder", errno: ENOENT) }
    for change in nameChanges where change.folder == path { change.apply(to: &durableNames) }
    nameChanges.removeAll { $0.folder == path }
  }

  mutating func write(_ bytes: [UInt8], at offset: Int, to node: DiskNode) throws(SystemError) {
    let end = offset + bytes.count
    if end > node.bytes.count {
      guard hasRoom(for: end, in: node) else { throw SystemError("write", errno: ENOSPC) }
      DiskNode.resize(&node.bytes, to: end)
    }
    node.bytes.replaceSubrange(offset..<end, with: bytes)
    node.changes.append(.write(offset: offset, bytes))
  }

  mutating func allocate(_ byteCount: Int, in node: DiskNode) throws(SystemError) {
    guard byteCount > node.bytes.count else { return }
    guard hasRoom(for: byteCount, in: node) else { throw SystemError("allocate", errno: ENOSPC) }
    truncate(node, to: byteCount)
  }

  mutating func truncate(_ node: DiskNode, to byteCount: Int) {
    DiskNode.resize(&node.bytes, to: byteCount)
    node.changes.append(.size(byteCount))
  }

  mutating func place(_ path: String, _ bytes: [UInt8]) {
    let node = DiskNode()
    node.bytes = bytes
    node.sync()
    names[path] = node
    durableNames[path] = node
  }

  mutating func placeFolder(_ path: String) {
    var path = path
    while names[path] == nil {
      let node = DiskNode(isFolder: true)
      (names[path], durableNames[path]) = (node, node)
      path = Self.parent(path)
    }
  }

  mutating func kill() {
    life += 1
    injectedFailure = nil
  }

  /// Keeps a random prefix of the name changes, in order, as a journaling file system does, or any of them. Each file
  /// loses changes independently.
  mutating func crash(reordersNames: Bool) {
    kill()
    var files: [ObjectIdentifier: DiskNode] = [:]
    for change in nameChanges {
      // The changes are kept up to a random point.
      guard Int.random(in: 0..<3, using: &random) > 0 else {
        if reordersNames { continue }
        break
      }
      change.apply(to: &durableNames)
    }
    nameChanges = []
    names = durableNames
    for path in names.keys.sorted() {
      guard let node = names[path], files.updateValue(node, forKey: ObjectIdentifier(node)) == nil else { continue }
      node.crash(&random)
    }
  }
}
