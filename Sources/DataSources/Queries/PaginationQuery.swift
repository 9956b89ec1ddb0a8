/// A query for a part of a longer list. Queries that say which part adopt it.
///
/// Key-value sources answer `getAll` with the values of some of their entries, in the order of the keys' bytes. They count entries: a
/// list is one of them, and gives all of its elements.
public protocol PaginationQuery: Query {}

/// A page by its position. Entries that are written or deleted meanwhile shift the pages that follow.
public struct PaginationOffsetLimitQuery: PaginationQuery, Hashable {
  /// How many entries come before the page; past the end the page is empty. Key-value sources refuse a negative one with `illegalArgument`.
  public let offset: Int
  /// How many entries the page has at most. Key-value sources refuse a negative one with `illegalArgument`.
  public let limit: Int

  public init(offset: Int, limit: Int) {
    self.offset = offset
    self.limit = limit
  }

  public var keyValueAddress: KeyValueAddress { .offset(offset, limit: limit) }
}

/// A page by the key that it comes after. Whatever is written meanwhile, following pages neither repeat nor leave out what was there.
public struct PaginationCursorQuery: PaginationQuery, Hashable {
  /// The key of the last entry of the page before, which need not exist any more; nil for the first page.
  public let cursor: String?
  /// How many entries the page has at most. Key-value sources refuse a negative one with `illegalArgument`.
  public let limit: Int

  /// The first page.
  public init(limit: Int) {
    cursor = nil
    self.limit = limit
  }

  /// The page after the entry of an id.
  public init<K: StableKey>(after id: K, limit: Int) {
    cursor = id.stableKey
    self.limit = limit
  }

  public var keyValueAddress: KeyValueAddress { .after(cursor, limit: limit) }
}
