import Platform

/// The engines that can keep a store. This is the one place that names them and puts them together; all other code asks
/// it.
///
/// To add an engine, add a case here and fill in the properties below. The compiler finds every `switch` that needs an
/// answer.
package enum EngineKind: String, CaseIterable, Sendable {
  /// Entries live in the process's memory and don't survive it.
  case memory
  /// Entries are written to a log and survive.
  case log
  /// Entries are files in a folder, one each, and survive.
  case directory

  /// - Throws: `StorageError.unknownEngine` for any other name.
  package init(named name: String) throws(StorageError) {
    guard let kind = EngineKind(rawValue: name) else { throw .unknownEngine(name) }
    self = kind
  }

  /// The type that keeps stores of this kind in a folder; nil for an engine without files.
  var fileEngine: (any FileEngine.Type)? {
    switch self {
    case .memory: nil
    case .log: LogEngine.self
    case .directory: DirectoryEngine.self
    }
  }

  /// A Boolean value that indicates whether large values are in files only.
  var separatesValues: Bool {
    switch self {
    case .memory, .directory: false
    case .log: true
    }
  }

  /// The option that the specification of a store takes.
  var option: StoreOption {
    switch self {
    case .memory: .limit
    case .log, .directory: .durability
    }
  }

  /// What a check of a store counts, in the singular and the plural.
  package var countedItem: (singular: String, plural: String) {
    switch self {
    case .log: ("record", "records")
    case .memory, .directory: ("entry", "entries")
    }
  }

  /// A Boolean value that indicates whether a store is recorded in a data directory and survives the process.
  package var isDurable: Bool { fileEngine != nil }

  /// Returns the engine that has written a folder with those file names; nil if no engine recognizes them.
  static func recognizing(fileNames: [String]) -> EngineKind? {
    allCases.first { $0.fileEngine?.recognizes(fileNames: fileNames) ?? false }
  }
}

/// An option in the specification of a store.
enum StoreOption: String, Sendable {
  case durability, limit

  /// The syntax of the option, for error messages.
  var usage: String {
    switch self {
    case .durability: "durability=always|interval:1s|none"
    case .limit: "limit=256MiB"
    }
  }
}

/// An engine that keeps each store in a folder of files: how to open, check and salvage one.
protocol FileEngine: Engine {
  /// Opens the store in a folder, and loads its entries into an empty map.
  /// - Parameters:
  ///   - path: The folder, as an absolute path.
  ///   - now: The current time.
  ///   - progress: Called repeatedly with how much has been read, and of how much.
  /// - Returns: The engine, and remarks for the log.
  static func openStore(
    in path: String, on files: any FileSystem, at now: ClockReading, into map: inout EntryMap,
    progress: (Int, Int) -> Void
  ) throws -> (engine: any Engine, remarks: [String])

  /// Reads as much of a store's files as shows which version has written them, and changes nothing.
  /// - Throws: A `FileEngineError` if a file can't be recognized, whose `isLaterVersion` is true if a later version of
  ///   this program has written it.
  static func checkVersion(in path: String, on files: any FileSystem) throws

  /// Returns whether the engine has written a folder with those file names.
  static func recognizes(fileNames: [String]) -> Bool

  /// Reads all files in the folder of a store that no process has open, and changes nothing.
  /// - Parameter progress: Called with the size of each piece that was read.
  static func checkStore(
    in path: String, on files: any FileSystem, progress: (Int) -> Void
  ) throws -> StoreReport.Files

  /// Copies everything that is intact into another folder, which is empty.
  /// - Parameter progress: Called with the size of each piece that was read.
  /// - Returns: A report on the original, and what was copied.
  static func salvageStore(
    in path: String, to target: String, on files: any FileSystem, progress: (Int) -> Void
  ) throws -> (files: StoreReport.Files, salvage: StoreReport.SalvageSummary)
}

/// An error of a file engine that names the file it is about.
protocol FileEngineError: Error {
  /// The file; nil for an error that is not about a file.
  var path: String? { get }
  /// Whether a later version of this program has written the file.
  var isLaterVersion: Bool { get }
}
