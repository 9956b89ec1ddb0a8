/// What the figures of stores are, in a sentence each. `Protocol/wire.md` §6.1 has more of them.
enum StoreFigureHelp {
  static func text(_ name: String) -> String { texts[name] ?? "A store's figure \(name), as larder stats shows it." }

  private static let texts = [
    "entries": "Entries.",
    "revision": "The store's counter of writes.",
    "key_bytes": "The sum of the keys' sizes.",
    "value_bytes": "The sum of the values' sizes.",
    "memory_bytes": "Memory that the store takes.",
    "values_on_disk": "Values that are read from the disk when they are asked for.",
    "values_on_disk_bytes": "The sum of their sizes.",
    "expiring": "Entries that expire.",
    "expired_total": "Entries that were removed because their time was over.",
    "snapshots": "Views of the store that open answers hold.",
    "watches": "Watches of the store's changes.",
    "limit_bytes": "How much memory the entries may take.",
    "limited_bytes": "How much of the limit they take.",
    "evicted_total": "Entries that were removed to make room for others.",
    "durable_revision": "The last revision that was written to the store's files.",
    "read_only": "1 when the store's files failed and it takes no writes, else 0.",
    "log_bytes": "Size of the log.",
    "log_live_bytes": "What of the log the entries take, about.",
    "log_dead_bytes": "What of the log a compaction can give back.",
    "log_segments": "Files of the log.",
    "log_room_bytes": "What can be written without taking more of the disk.",
    "log_written_bytes_total": "Bytes that were written to the log, by compactions too.",
    "log_compaction_bytes_total": "Bytes that compactions have written.",
    "log_compactions_total": "Compactions that have ended.",
    "log_syncs_total": "Calls that had the disk take what was written.",
    "log_cut_bytes": "The unfinished end that was cut off when the store was opened.",
    "directory_files": "Entries that have their file.",
    "directory_files_waiting": "Entries whose files are yet to be written.",
    "directory_journal_bytes": "What the journal holds.",
    "directory_journal_capacity_bytes": "Size of the journal's file.",
  ]
}
