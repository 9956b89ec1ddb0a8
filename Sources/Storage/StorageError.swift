import Documents

/// What can go wrong in this layer. The enum is closed, so that the server maps each case to one wire code in one
/// place.
///
/// Requests that can't be fulfilled throw one of these; a broken invariant of the map traps instead.
package enum StorageError: Error, Equatable, Sendable {
  /// The name breaks the rules of `StoreName`.
  case invalidStoreName(String)
  /// No engine has this name. These are the names of those that there are.
  case unknownEngine(String, known: [String])
  /// An engine doesn't have this option, or its value is invalid. The text says which options there are.
  case invalidOption(String)
  /// A data directory records the stores of this engine, and the server has none.
  case noDataDirectory(EngineKind)
  /// A store with this name already exists, with this engine.
  case storeExists(StoreName, EngineKind)
  /// There is no store with this name.
  case unknownStore(StoreName)
  /// The files of the store with this name could not be opened when the server started, for this reason.
  case storeDamaged(StoreName, String)
  /// Another server serves the store with this name, or none does for now.
  case servedElsewhere(StoreName, StoreElsewhere)
  /// The catalog is at its limit.
  case tooManyStores(limit: Int)
  /// The store has an index with this name and another definition.
  case indexExists(DocumentIndex)
  /// The store has no index with this name.
  case unknownIndex(String)
  /// The store is at its limit of indexes.
  case tooManyIndexes(limit: Int)
  /// The definitions of the store's indexes would have more bytes than this.
  case indexesTooLarge(limit: Int)
  /// The store was dropped while the caller had it open.
  case storeDropped
  /// The snapshot was ended, because open replies kept too much in memory, or belongs to another store.
  case snapshotEnded
  /// The store has reached what 32-bit handles can address: 32 GiB of records, or 2^32 nodes.
  case storeFull
  /// The store has reached the last revision.
  case revisionsUsedUp
  /// The write needs more than the store's limit, in bytes, even if all other entries are evicted.
  case overLimit(Int)
  /// The process has reached its memory limit.
  case memoryLimit
  /// The system has no memory left.
  case outOfMemory
  /// The disk has no space for the write, or the process has no file descriptor for it. The store keeps retrying both.
  case diskFull
  /// More commits wait to be written than the disk can take.
  case diskTooSlow
  /// A large commit is being made. The write can be tried again when it has ended.
  case commitPending
  /// What keeps the store is unavailable, for this reason. The store keeps trying, and accepts writes again by itself.
  case engineUnavailable(String)
  /// The store's files have failed, for this reason, and nothing is written to them any more.
  case readOnly(String)
  /// The store's files can't be opened: which, and why.
  case unreadable(String)
}

extension StorageError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .invalidStoreName(let name):
      "\"\(name)\" is not a valid store name; use 1 to \(StoreName.maxLength) ASCII letters, digits, '.', '_' and"
        + " '-', starting with a letter, a digit or '_'"
    case .unknownEngine(let name, let known):
      "there is no engine \"\(name)\"; known engines: \(known.joined(separator: ", "))"
    case .invalidOption(let reason): reason
    case .noDataDirectory(let engine):
      "the server has no data directory for a store with the engine \(engine.name); start it with --data DIR"
    case .storeExists(let name, let engine): "there is a store \"\(name)\" already (engine \(engine.name))"
    case .unknownStore(let name): "there is no store \"\(name)\""
    case .storeDamaged(let name, let reason): "the store \"\(name)\" is damaged and not served: \(reason)"
    case .servedElsewhere(let name, let elsewhere):
      "this server does not serve the store \"\(name)\": \(elsewhere.reason)"
    case .tooManyStores(let limit): "the server has reached its limit of \(limit) stores; drop one first"
    case .indexExists(let index):
      "the store has an index \"\(index.name)\" with another definition, \(index.json); delete it first, or use another"
        + " name"
    case .unknownIndex(let name): "the store has no index \"\(name)\""
    case .tooManyIndexes(let limit): "the store has reached its limit of \(limit) indexes; delete one first"
    case .indexesTooLarge(let limit):
      "the definitions of the store's indexes would have more than \(limit) bytes; use a shorter selector"
    case .storeDropped: "the store was dropped"
    case .snapshotEnded:
      "the server ended the reply, because open replies kept more in memory than limits.snapshot-memory permits; read"
        + " replies faster"
    case .storeFull: "the store has reached its limit of 32 GiB of records"
    case .revisionsUsedUp:
      "the store has used up its revisions, which end at \(CommitBuffer.revisions.upperBound), so it is read-only; load a"
        + " backup of it into a new store"
    case .overLimit(let bytes):
      "the write needs more than the store's limit of \(MemoryLimit(bytes: bytes)), even if all other entries were evicted"
    case .memoryLimit: "the server has reached its memory limit; delete entries, or raise its setting memory-limit"
    case .outOfMemory: "the system has no memory left for the store"
    case .diskFull:
      "the disk is full, or the server can't open more files; writes resume as soon as that changes"
    case .commitPending: "a large write to the store has not ended; try again in a moment"
    case .diskTooSlow: "the disk can't keep up with the writes; try again in a moment"
    case .engineUnavailable(let reason):
      "the store accepts no writes at the moment, and resumes by itself: \(reason); try again later"
    case .readOnly(let reason): "the store is read-only until it is reopened: \(reason)"
    case .unreadable(let reason): reason
    }
  }
}
