import Platform

/// What was found when a store was opened.
package struct StoreOpening: Sendable {
  package var entries = 0
  package var revision: UInt64 = 0
  /// How long it took.
  package var milliseconds: UInt64 = 0
  /// What people should know: a tail that was cut off, files that are not the store's.
  package var remarks: [String] = []
}

extension Store {
  /// Opens a durable store with the engine that it has. The one place that puts engines together.
  /// - Parameter progress: called now and then with how much of the files is read, and of how much.
  package static func open(
    _ description: StoreDescription, in data: DataDirectory, progress: (Int, Int) -> Void = { _, _ in }
  ) throws -> (store: Store, opening: StoreOpening) {
    let moment = ClockReading.now
    let (files, path) = (data.fileSystem, data.filesFolder(of: description.name))
    var map = EntryMap()
    var opening = StoreOpening()
    let engine: any Engine
    switch description.engine {
    case .memory: preconditionFailure("a store in memory has no files")
    case .log:
      let (log, recovery) = try LogEngine.open(
        path, files: files, now: moment.monotonic, unixNow: moment.wall, progress: progress, into: &map)
      if recovery.cutBytes > 0 {
        opening.remarks.append("cut \(recovery.cutBytes) bytes of unfinished writes off \(recovery.cutPath ?? path)")
      }
      engine = log
    case .directory:
      let (directory, report) = try DirectoryEngine.open(path, on: files, progress: progress, into: &map, at: moment)
      opening.remarks = report.findings.map(\.description)
      engine = directory
    }
    opening.entries = map.order.count
    opening.revision = map.revision
    opening.milliseconds = monotonicMilliseconds() - moment.monotonic
    let store = Store(
      name: description.name, engine: description.engine, map: map, writingTo: engine,
      durability: description.durability)
    return (store, opening)
  }
}
