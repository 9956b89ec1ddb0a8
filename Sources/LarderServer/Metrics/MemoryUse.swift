import Platform
import Storage

/// What the memory of the process is used for, in bytes: parts that together are about its resident memory. What is
/// missing is the stacks of threads, and free memory that the heap has not returned to the system yet.
struct MemoryUse {
  /// The memory of all stores.
  private let maps: MapMemory
  /// The requests and replies of all connections that wait.
  private let buffers: Int
  /// The resident memory; 0 if the system doesn't report it.
  let resident: Int
  /// The pages of files, which are the program's code.
  private let code: Int

  /// Locks every store, one after the other.
  init(_ server: ServerState) {
    var maps = MapMemory()
    for store in server.stores.list() { maps += store.access { $0.memory } }
    self.maps = maps
    buffers = server.buffers.memoryBytes
    (resident, code) = ProcessMemory.resident() ?? (0, 0)
  }

  /// The memory of all stores' entries.
  var entryBytes: Int { maps.entryBytes }

  /// What clients store and send.
  private var clientBytes: Int { maps.entryBytes + maps.changes + buffers }

  /// All parts but the heap.
  var accountedBytes: Int { clientBytes + code }

  /// All parts, by their names in figures and metrics. Takes longer the more free blocks the heap has.
  var parts: [(name: String, bytes: Int)] {
    let otherHeap = ProcessMemory.allocatedBytes - (clientBytes - maps.pagedBytes)
    return Self.parts(of: maps) + [("buffers", buffers), ("code", code), ("heap", max(0, otherHeap))]
  }

  /// The parts of a store's memory.
  static func parts(of map: MapMemory) -> [(name: String, bytes: Int)] {
    [
      ("records", map.records), ("hash", map.hash), ("order", map.order), ("indexes", map.indexes),
      ("expiry", map.expiry), ("snapshots", map.snapshots), ("changes", map.changes),
    ]
  }
}
