/// Where the entries of a source that keeps files are. The same six operations as `KeyValueDataSource`'s, and as atomic; they block for
/// as long as the disk takes.
protocol EntryTable<T>: Sendable {
  associatedtype T: Sendable

  func entries(of keys: [String]) throws -> [StoredValue<T>?]
  func entries(in range: EntryRange) throws -> [KeyValueEntry<T>]
  func store(_ entries: [KeyValueEntry<T>]) throws
  func remove(_ keys: [String]) throws
  func removeAll() throws
}
