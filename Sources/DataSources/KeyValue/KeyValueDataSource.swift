/// A source that keeps entries by their keys.
///
/// A type that implements the few requirements below is a get, put and delete data source that answers every key-value query the way
/// all others do; what the queries mean is written once, here. Each requirement is atomic to everybody who uses the source. Keys that
/// come in are of 1 to 4,096 bytes and compare by their bytes.
public protocol KeyValueDataSource<T>: GetDataSource, PutDataSource, DeleteDataSource {
  associatedtype T

  /// What is held under a key; nil when there is nothing.
  func entry(of key: String) async throws -> StoredValue<T>?

  /// What is held under each of the keys, in their order, at one moment.
  func entries(of keys: [String]) async throws -> [StoredValue<T>?]

  /// The entries of a range, in the order of their keys' bytes, at one moment.
  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>]

  /// Writes all of the entries or, when it throws, none; each replaces what was held under its key, of either kind. Of several with
  /// one key the last counts.
  func store(_ entries: [KeyValueEntry<T>]) async throws

  /// Removes what is held under the keys, if anything is.
  func remove(_ keys: [String]) async throws

  /// Removes every entry of this source, and of no other.
  func removeAll() async throws
}

extension KeyValueDataSource {
  public func entry(of key: String) async throws -> StoredValue<T>? {
    try await entries(of: [key])[0]
  }
}
