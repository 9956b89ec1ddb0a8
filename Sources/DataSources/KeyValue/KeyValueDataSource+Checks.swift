// The requirements of a key-value source are public. The sources of this package check what they receive as the calls
// with queries do, so that no caller can store an entry that no query finds.

extension KeyValueDataSource {
  /// Returns entries, after it has checked their keys.
  package func checked(_ entries: [KeyValueEntry<T>]) throws -> [KeyValueEntry<T>] {
    for entry in entries { _ = try checked(entry.key) }
    return entries
  }

  /// Returns a range, after it has checked its numbers and its key.
  package func checked(_ range: EntryRange) throws -> EntryRange {
    switch range {
    case .all:
      return range
    case .offset(let offset, let limit):
      guard offset >= 0, limit >= 0 else {
        throw DataSourceError(.illegalArgument, "offset \(offset) and limit \(limit): neither may be negative")
      }
      return range
    case .after(let key, let limit, let prefix):
      guard limit >= 0 else { throw DataSourceError(.illegalArgument, "limit \(limit): it must not be negative") }
      return .after(try cursor(key), limit: limit, prefix: prefix)
    }
  }
}
