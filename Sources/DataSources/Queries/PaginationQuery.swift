/// A query for a part of a longer list.
///
/// A key-value source answers `getAll` with the values of some of its entries, in the order of the keys' bytes. It
/// counts entries: a list counts as one entry and contributes all of its elements.
public protocol PaginationQuery: Query {}

/// A page by position. Writes and deletions between two calls shift the pages that follow.
public struct PaginationOffsetLimitQuery: PaginationQuery, Hashable {
  /// The number of entries before the page. Past the end the page is empty. Key-value sources reject a negative offset
  /// with `illegalArgument`.
  public let offset: Int
  /// The maximum number of entries of the page. Key-value sources reject a negative limit with `illegalArgument`.
  public let limit: Int

  public init(offset: Int, limit: Int) {
    self.offset = offset
    self.limit = limit
  }

  public var keyValueAddress: KeyValueAddress { .offset(offset, limit: limit) }
}

/// A page by the key that precedes it; `KeyValueDataSource.page` returns it with its keys and the query for the next
/// page. Whatever is written between two calls, later pages neither repeat nor miss an
/// entry that existed all along.
public struct PaginationCursorQuery: PaginationQuery, Hashable {
  /// The key of the last entry of the previous page, which may no longer exist; nil for the first page.
  public let cursor: String?
  /// The maximum number of entries of the page. Key-value sources reject a negative limit with `illegalArgument`.
  public let limit: Int
  /// What the keys of the page begin with. Every key begins with the empty prefix.
  public let prefix: String

  /// Creates a query for the first page.
  public init(limit: Int, prefix: String = "") {
    cursor = nil
    self.limit = limit
    self.prefix = prefix
  }

  /// Creates a query for the page after the entry of an id.
  public init<K: StableKey>(after id: K, limit: Int, prefix: String = "") {
    cursor = id.stableKey
    self.limit = limit
    self.prefix = prefix
  }

  public var keyValueAddress: KeyValueAddress { .after(cursor, limit: limit, prefix: prefix) }
}
