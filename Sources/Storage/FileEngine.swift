import Platform

/// An engine that keeps each store in a folder of files: how to open, check and salvage one.
protocol FileEngine: Engine, SendableMetatype {
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
