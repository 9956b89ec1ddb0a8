/// Finds the documents of a query among the values of entries, which are passed to it one by one. Of a match, it keeps
/// only a handle, by which its owner finds the entry again.
///
///     var finder = try EntryFinder(query, isOrdered: true)
///     for entry in entries where !finder.isFinished {
///       finder.examine(entry.value, key: entry.key, revision: entry.revision, handle: entry.handle, &budget)
///     }
///     let page = finder.page(&budget)
///
/// It isn't copyable, so that examining an entry counts no references.
package struct EntryFinder: ~Copyable {
  private var finder: PageFinder<UInt32>
  private var metadata = EntryMetadata()

  /// The number of entries that match, on the page or not.
  package private(set) var matchCount = 0

  /// Creates a finder that has not examined any entries.
  /// - Parameters:
  ///   - isOrdered: Whether the entries will be examined in the order of the query, ties included.
  ///   - isExact: Whether all entries that will be examined are documents that are known to match.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, or the selector needs a text index.
  package init(_ query: DocumentQuery, isOrdered: Bool, isExact: Bool = false) throws(SelectorError) {
    finder = try PageFinder(query, isOrdered: isOrdered, isExact: isExact)
  }

  /// Whether further entries can't change the page.
  package var isFinished: Bool { finder.isFinished }

  /// The memory of the handles and sort keys that are kept, in bytes.
  package var keptByteCount: Int { finder.keptByteCount }

  /// Adds an entry to the page if it is a document and matches.
  /// - Parameters:
  ///   - text: The value. It need not be JSON: values that aren't JSON objects match no query.
  ///   - key: The key, in UTF-8.
  ///   - budget: Once it is exhausted, the finder has no result.
  @inline(__always)
  package mutating func examine(
    _ text: Span<UInt8>, key: Span<UInt8>, revision: UInt64, handle: UInt32, _ budget: inout WorkBudget
  ) {
    metadata.set(key: key, ifNeeded: finder.needsID, revision: finder.needsRevision ? revision : nil)
    if metadata.withSource(of: text, { source in finder.examine(source, &budget, handle) }) { matchCount += 1 }
  }

  /// Returns the handles of the page's documents in its order, and the bookmark of the next page if there is one.
  /// - Parameter budget: Once it is exhausted, the page means nothing.
  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Complexity: O(*k* log *k*) comparisons of keys, where *k* is the number of handles that are kept.
  package consuming func page(_ budget: inout WorkBudget) -> (handles: [UInt32], bookmark: String?) {
    let page = finder.page(&budget)
    return (page.items, page.bookmark)
  }
}

/// The fields that a query returns, for the values of entries.
package struct EntryProjection: Sendable {
  private let projection: Projection

  /// - Parameter fields: The paths of the fields. There is at least one.
  package init(_ fields: [FieldPath]) { projection = Projection(fields) }

  /// Returns an object with the fields that an entry has, as JSON.
  /// - Precondition: The text is a JSON object, which a finder has found.
  /// - Complexity: O(*n*) in the size of the text.
  package func object(of text: Span<UInt8>, key: Span<UInt8>, revision: UInt64) -> [UInt8] {
    var metadata = EntryMetadata()
    metadata.set(key: key, revision: revision)
    return metadata.withSource(of: text, projection.object)
  }
}

/// A selector for the values of entries.
package struct EntrySelector: Sendable {
  private let program: Program
  private var metadata = EntryMetadata()

  /// - Throws: `SelectorError` if the selector needs a text index, or if it was built in Swift and exceeds a limit.
  package init(_ selector: Selector) throws(SelectorError) { program = try Program(selector.checkedTree()) }

  /// Returns whether an entry is a document and matches. Its value need not be JSON.
  /// - Parameter budget: Once it is exhausted, the result means nothing.
  /// - Complexity: O(*n*) in the size of the text, and for each condition O(*m*) in the size of its values.
  package mutating func matches(
    _ text: Span<UInt8>, key: Span<UInt8>, revision: UInt64, _ budget: inout WorkBudget
  ) -> Bool {
    metadata.set(key: key, revision: revision, for: program.paths)
    return metadata.withSource(of: text) { program.holds(for: $0, &budget) }
  }
}
