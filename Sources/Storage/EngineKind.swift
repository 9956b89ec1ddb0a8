/// The engines that can keep a store. This is the one place that names them; everything else asks it.
package enum EngineKind: String, CaseIterable, Sendable {
  /// Entries live in the process's memory, and nothing survives it.
  case memory
  /// Entries are written to a log, and survive.
  case log
  /// Entries are files in a folder, one each, and survive.
  case directory

  /// Throws `StorageError.unknownEngine` for a name that isn't listed here.
  package init(named name: String) throws(StorageError) {
    guard let kind = EngineKind(rawValue: name) else { throw .unknownEngine(name) }
    self = kind
  }

  /// Whether its stores have files in a data directory.
  package var isDurable: Bool { self != .memory }
}
