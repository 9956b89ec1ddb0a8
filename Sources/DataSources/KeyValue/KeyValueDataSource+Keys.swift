/// The longest key of a key-value source, in bytes: that of the server's stores.
let maxKeyBytes = 4_096

extension KeyValueDataSource {
  /// The keys of every entry, in the order of their bytes. Reads the entries too.
  public func keys() async throws -> [String] {
    try await entries(in: .all).map(\.key)
  }

  func checked(_ key: String) throws -> String {
    let count = key.utf8.count
    guard count > 0 else { throw DataSourceError(.illegalArgument, "an empty key") }
    guard count <= maxKeyBytes else {
      throw DataSourceError(.illegalArgument, "a key of \(count) bytes; \(maxKeyBytes) is the most")
    }
    return key
  }

  func checked(_ keys: [String]) throws -> [String] {
    for key in keys { _ = try checked(key) }
    return keys
  }
}
