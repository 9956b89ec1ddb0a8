/// What a server tells of the log of its store.
struct LogStatus {
  let entries: Int
  let bytes: Int
  let deadBytes: Int
  /// Since it started: all bytes, those of compactions, and how many of these there were.
  let writtenBytes: Int
  let compactionBytes: Int
  let compactions: Int

  /// - Throws: when the server does not answer, or has no log.
  init(of server: RunningServer) throws {
    let line = try SetupLine(to: server.address)
    let target = LarderTarget(store: server.contender.stores[0], valueSize: 0, keysInGetMany: 1)
    let figures = try target.figures(line, target.greet(line))
    func figure(_ name: String) throws -> Int {
      guard let value = figures[name] else { throw BenchError("the store's stats have no \(name)") }
      return Int(clamping: value)
    }
    entries = try figure("entries")
    bytes = try figure("log_bytes")
    deadBytes = try figure("log_dead_bytes")
    writtenBytes = try figure("log_written_bytes_total")
    compactionBytes = try figure("log_compaction_bytes_total")
    compactions = try figure("log_compactions_total")
  }
}
