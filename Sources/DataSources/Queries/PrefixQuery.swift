/// A query for all entries whose keys begin with a prefix.
///
///     try await library.getAll(PrefixQuery("book:"))
///     try await library.delete(PrefixQuery("book:"))
///
/// In a key-value source, `getAll` returns every single value and every element of every list under such a key, in the
/// order of the keys' bytes, and `delete` removes these entries. In operations on one value or list the query isn't
/// supported. A prefix is literal, and compares by its UTF-8 bytes; every key begins with the empty prefix.
public struct PrefixQuery: Query, Hashable {
  public let prefix: String

  public init(_ prefix: String) {
    self.prefix = prefix
  }

  public var keyValueAddress: KeyValueAddress { .prefix(prefix) }
}

extension PrefixQuery {
  public static func == (a: PrefixQuery, b: PrefixQuery) -> Bool { EntryKey(a.prefix) == EntryKey(b.prefix) }
  public func hash(into hasher: inout Hasher) { hasher.combine(EntryKey(prefix)) }
}
