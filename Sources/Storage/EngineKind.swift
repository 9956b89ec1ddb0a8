import Platform

/// An engine as the rest of the program sees it: its name, its options, and how it opens a store.
///
/// A server has a list of engines (`ServerConfiguration.engines`), whose default is `[EngineKind].builtIn`. All errors,
/// help and completions that concern engines come from these descriptions, and nothing else distinguishes engines by
/// their names. Two descriptions with the same name are equal.
package struct EngineKind: Sendable {
  /// Opens a store, and loads its entries into an empty map.
  /// - Parameter progress: Called repeatedly with how much has been read, and of how much.
  /// - Returns: The engine, and remarks for the log.
  package typealias Opener =
    @Sendable (_ store: EngineOpening, _ map: inout EntryMap, _ progress: (Int, Int) -> Void) throws -> (
      engine: any Engine, remarks: [String]
    )

  /// Removes everything of a dropped store that is outside of the data directory.
  package typealias Remover = @Sendable (StoreName, StoreSpecification) throws -> Void

  /// The name in specifications, such as `log`.
  package let name: String
  /// What the engine does, in one line of help that begins with a lowercase letter.
  package let summary: String
  /// The options that the specification of a store can have.
  package let options: [EngineOption]
  /// What a check of a store counts, in the singular and the plural.
  package let countedItem: (singular: String, plural: String)
  /// A Boolean value that indicates whether large values are outside of memory only.
  let separatesValues: Bool
  /// A Boolean value that indicates whether the data directory records the stores, with their indexes and histories.
  /// The server creates other durable stores only because its configuration or a client says so.
  package let isRecorded: Bool
  /// The type that keeps a store in a folder of files; nil for an engine without files of its own.
  let files: (any FileEngine.Type)?
  private let opener: Opener?
  private let remover: Remover

  private init(
    _ name: String, _ summary: String, _ options: [EngineOption], countedItem: (String, String),
    separatesValues: Bool, isRecorded: Bool, files: (any FileEngine.Type)?, opener: Opener?, remover: @escaping Remover
  ) {
    (self.name, self.summary, self.options) = (name, summary, options)
    self.countedItem = countedItem
    (self.separatesValues, self.isRecorded) = (separatesValues, isRecorded)
    (self.files, self.opener, self.remover) = (files, opener, remover)
  }

  /// Describes an engine that keeps entries in the process's memory only.
  init(volatile name: String, summary: String, options: [EngineOption]) {
    self.init(
      name, summary, options, countedItem: ("entry", "entries"), separatesValues: false, isRecorded: false, files: nil,
      opener: nil, remover: { _, _ in })
  }

  /// Describes an engine that keeps each store in a folder of the data directory.
  init(
    _ name: String, summary: String, options: [EngineOption], countedItem: (String, String), separatesValues: Bool,
    files: any FileEngine.Type
  ) {
    self.init(
      name, summary, options, countedItem: countedItem, separatesValues: separatesValues, isRecorded: true,
      files: files,
      opener: { store, map, progress in
        guard let folder = store.folder else { preconditionFailure("a data directory records stores with files") }
        return try files.openStore(
          in: folder, on: store.fileSystem, at: store.now, into: &map, progress: progress)
      },
      remover: { _, _ in })
  }

  /// Describes a durable engine that keeps entries elsewhere, such as in another process.
  /// - Parameters:
  ///   - isRecorded: Whether the data directory records the stores.
  ///   - opener: Opens a store. If it throws `EngineError.transient`, the store can be opened later.
  ///   - remover: Removes what a dropped store has left elsewhere. The store's engine is closed.
  package init(
    _ name: String, summary: String, options: [EngineOption], isRecorded: Bool, opener: @escaping Opener,
    remover: @escaping Remover
  ) {
    self.init(
      name, summary, options, countedItem: ("entry", "entries"), separatesValues: false, isRecorded: isRecorded,
      files: nil, opener: opener, remover: remover)
  }

  /// A Boolean value that indicates whether stores survive the process.
  package var isDurable: Bool { opener != nil }

  /// Opens a durable store, and loads its entries into an empty map.
  func open(
    _ store: EngineOpening, into map: inout EntryMap, progress: (Int, Int) -> Void
  ) throws -> (engine: any Engine, remarks: [String]) {
    guard let opener else { preconditionFailure("stores of the engine \(name) are created, and never opened") }
    return try opener(store, &map, progress)
  }

  /// Removes everything of a dropped store that is outside of the data directory.
  func removeStore(_ name: StoreName, _ specification: StoreSpecification) throws {
    try remover(name, specification)
  }
}

/// A store that an engine is about to open.
package struct EngineOpening: Sendable {
  package let name: StoreName
  /// The store's specification, with a value for every option that has a default.
  package let specification: StoreSpecification
  /// The folder for the store's files in the data directory, as an absolute path; nil if that doesn't record the store.
  package let folder: String?
  package let fileSystem: any FileSystem
  package let now: ClockReading

  package init(
    name: StoreName, specification: StoreSpecification, folder: String?, fileSystem: any FileSystem, now: ClockReading
  ) {
    (self.name, self.specification, self.folder) = (name, specification, folder)
    (self.fileSystem, self.now) = (fileSystem, now)
  }
}

extension EngineKind: Hashable, CustomStringConvertible {
  package static func == (first: EngineKind, second: EngineKind) -> Bool { first.name == second.name }
  package func hash(into hasher: inout Hasher) { hasher.combine(name) }
  package var description: String { name }
}

// MARK: - The built-in engines

extension EngineKind {
  package static let memory = EngineKind(
    volatile: "memory", summary: "in the memory of the server; does not survive a restart", options: [.limit])

  package static let log = EngineKind(
    "log", summary: "in append-only files", options: [.durability], countedItem: ("record", "records"),
    separatesValues: true, files: LogEngine.self)

  package static let directory = EngineKind(
    "directory", summary: "in one file for each entry", options: [.durability], countedItem: ("entry", "entries"),
    separatesValues: false, files: DirectoryEngine.self)
}

extension EngineKind {
  /// The engine of stores that outlive their server, which a server has if its settings name a database.
  package static let replicated = EngineKind(
    "replicated", summary: "in memory, with a log in PostgreSQL that another server can take over",
    options: [.database, .durability], isRecorded: false,
    opener: { _, _, _ in throw NoDatabases() }, remover: { _, _ in throw NoDatabases() })

  private struct NoDatabases: Error, CustomStringConvertible {
    let description = "the server has no database for a store with the engine replicated; set databases"
  }

  /// Returns this engine with something to open its stores.
  package func opening(with opener: @escaping Opener, removing remover: @escaping Remover) -> EngineKind {
    EngineKind(
      name, summary: summary, options: options, isRecorded: isRecorded, opener: opener, remover: remover)
  }
}

extension [EngineKind] {
  /// The engines of every server.
  package static let builtIn: [EngineKind] = [.memory, .log, .directory]

  /// All engines that a server can have.
  package static let known: [EngineKind] = builtIn + [.replicated]

  /// Returns the engine with a name.
  /// - Throws: `StorageError.unknownEngine`.
  package func named(_ name: String) throws(StorageError) -> EngineKind {
    guard let engine = first(where: { $0.name == name }) else {
      throw .unknownEngine(name, known: map(\.name))
    }
    return engine
  }

  /// Returns the engine that has written a folder with those file names; nil if no engine recognizes them.
  func recognizing(fileNames: [String]) -> EngineKind? {
    first { $0.files?.recognizes(fileNames: fileNames) ?? false }
  }
}
