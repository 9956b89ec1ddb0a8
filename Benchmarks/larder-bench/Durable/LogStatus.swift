/// The log figures of a server's store.
struct LogStatus {
  let entries: Int
  private let bytes: Int
  private let deadBytes: Int
  /// Since the server started: all bytes written, those written by compactions, and the number of compactions.
  let writtenBytes: Int
  let compactionBytes: Int
  let compactions: Int

  /// The share of the log that is garbage.
  var garbage: Double { Double(deadBytes) / Double(max(1, bytes)) }

  /// - Throws: `BenchError` if the server does not reply or the store has no log.
  init(of server: RunningServer) throws {
    let connection = try SetupConnection(to: server.address)
    let target = LarderTarget(store: server.contender.stores[0], valueSize: 0, keysPerRequest: 1)
    let figures = try target.figures(connection, target.handshake(connection))
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

/// The outcome of a turn, and the compaction that the log did during it.
struct LogTurn {
  let outcome: LoadOutcome
  let compactions: Int
  let compactedBytesPerSecond: Double

  init(_ outcome: LoadOutcome, before: LogStatus, after: LogStatus) {
    self.outcome = outcome
    compactions = after.compactions - before.compactions
    compactedBytesPerSecond = Double(after.compactionBytes - before.compactionBytes) / outcome.seconds
  }
}
