/// A page of entries, with their keys.
public struct KeyValuePage<T: Sendable>: Sendable {
  /// The entries, in the order of their keys' bytes.
  public let entries: [KeyValueEntry<T>]
  /// The query for the next page; nil if no entry followed this one.
  public let next: PaginationCursorQuery?
}

extension KeyValuePage: Equatable where T: Equatable {}
extension KeyValuePage: Hashable where T: Hashable {}

extension KeyValueDataSource {
  /// Returns a page of entries, and the query for the page that follows.
  ///
  ///     var query: PaginationCursorQuery? = PaginationCursorQuery(limit: 100, prefix: "book:")
  ///     while let next = query {
  ///       let page = try await library.page(next)
  ///       for entry in page.entries { print(entry.key) }
  ///       query = page.next
  ///     }
  /// - Throws: `DataSourceError.illegalArgument` for a limit less than 1.
  public func page(_ query: PaginationCursorQuery) async throws -> KeyValuePage<T> {
    guard query.limit >= 1 else {
      throw DataSourceError(.illegalArgument, "limit \(query.limit): it must be at least 1")
    }
    // One more entry tells whether another page follows.
    let limit = query.limit == .max ? query.limit : query.limit + 1
    var entries = try await entries(in: .after(cursor(query.cursor), limit: limit, prefix: query.prefix))
    guard entries.count > query.limit else { return KeyValuePage(entries: entries, next: nil) }
    entries.removeLast(entries.count - query.limit)
    let next = PaginationCursorQuery(after: entries[query.limit - 1].key, limit: query.limit, prefix: query.prefix)
    return KeyValuePage(entries: entries, next: next)
  }
}
