/// What a log has to say of itself.
struct LogFigures: Sendable {
  /// All segments, the active one as far as it is written.
  var bytes = 0
  /// What the live entries take, as the last look at them found.
  var liveBytes = 0
  var segments = 0
  var room = 0
  var commitBytes = 0
  var compactionBytes = 0
  var compactions = 0
  var syncs = 0
  /// What recovery cut off.
  var cutBytes = 0

  var named: [(name: String, value: UInt64)] {
    [
      ("log_bytes", UInt64(bytes)), ("log_live_bytes", UInt64(min(liveBytes, bytes))),
      ("log_dead_bytes", UInt64(max(0, bytes - liveBytes))), ("log_segments", UInt64(segments)),
      ("log_room_bytes", UInt64(room)), ("log_written_bytes_total", UInt64(commitBytes + compactionBytes)),
      ("log_compaction_bytes_total", UInt64(compactionBytes)), ("log_compactions_total", UInt64(compactions)),
      ("log_syncs_total", UInt64(syncs)), ("log_cut_bytes", UInt64(cutBytes)),
    ]
  }
}
