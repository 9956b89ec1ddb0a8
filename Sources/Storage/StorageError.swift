/// What can go wrong in this layer. Closed, so that the server maps each case to one code of the wire in one place.
///
/// Corrupt or impossible requests throw one of these; a broken invariant of the map traps instead.
package enum StorageError: Error, Equatable, Sendable {
  /// The name breaks the rules of `StoreName`.
  case invalidStoreName(String)
  /// No engine goes by this name; the message lists those that do.
  case unknownEngine(String)
  /// An option of an engine can't be understood: which, and what there is.
  case invalidOption(String)
  /// A durable store needs a data directory, and the server has none.
  case noDataDirectory(EngineKind)
  /// A store of this name is there already, kept by this engine.
  case storeExists(StoreName, EngineKind)
  /// No store of this name.
  case unknownStore(StoreName)
  /// The catalog is at its limit.
  case tooManyStores(limit: Int)
  /// The store was dropped while the caller still held it.
  case storeDropped
  /// The snapshot was ended, or belongs to another store.
  case snapshotEnded
  /// The store holds as much as 32-bit handles can name: 32 GiB of records, or 2^32 nodes.
  case storeFull
  /// A write takes more than its store's limit of so many bytes, whatever else is evicted.
  case overLimit(Int)
  /// The system refused memory.
  case outOfMemory
  /// The disk has no room for the write, or the process no descriptor to take it with. Both are tried again all the time.
  case diskFull
  /// More waits to be written than the disk takes.
  case diskTooSlow
  /// The store's files failed, and nothing is written to them any more: what happened.
  case readOnly(String)
  /// The store's files can't be opened: which, and why.
  case unreadable(String)
}

extension StorageError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .invalidStoreName(let name):
      "\"\(name)\" is no name for a store: it takes 1 to \(StoreName.maximumLength) ASCII letters, digits, '.', '_' and"
        + " '-', the first of them a letter, a digit or '_'"
    case .unknownEngine(let name):
      "there is no engine \"\(name)\"; known engines: " + EngineKind.allCases.map(\.rawValue).joined(separator: ", ")
    case .invalidOption(let reason): reason
    case .noDataDirectory(let engine):
      "the server has no data directory for a store of the engine \(engine.rawValue); start it with --data DIR"
    case .storeExists(let name, let engine): "there is a store \"\(name)\" already (engine \(engine.rawValue))"
    case .unknownStore(let name): "there is no store \"\(name)\""
    case .tooManyStores(let limit): "the server holds its limit of \(limit) stores; drop one first"
    case .storeDropped: "the store was dropped"
    case .snapshotEnded: "the snapshot has ended"
    case .storeFull: "the store holds its limit of 32 GiB of records"
    case .overLimit(let bytes):
      "the write takes more than the store's limit of \(MemoryLimit(bytes: bytes)) has room for, even if all else were evicted"
    case .outOfMemory: "the system has no memory left for the store"
    case .diskFull:
      "the disk is full, or the server can open no more files; writes go on as soon as that is over"
    case .diskTooSlow: "more waits to be written than the disk takes; try again in a moment"
    case .readOnly(let reason): "the store can only be read until it is opened anew: \(reason)"
    case .unreadable(let reason): reason
    }
  }
}
