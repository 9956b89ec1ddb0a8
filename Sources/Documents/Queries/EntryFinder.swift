/// Finds the documents of a query among the values of entries, which are passed to it one by one. Of a match, it keeps
/// only a handle, by which its owner finds the entry again.
///
///     var finder = try EntryFinder(query, isOrdered: true)
///     for entry in entries where !finder.isFinished {
///       finder.examine(entry.value, key: entry.key, revision: entry.revision, handle: entry.handle)
///     }
///     let page = finder.page()
package struct EntryFinder: Sendable {
  private var finder: PageFinder<UInt32>
  /// The key as a JSON string, and the revision, of the entry that is examined.
  private var metadata: [UInt8] = []

  /// The number of entries that have been examined.
  package private(set) var examinedCount = 0
  /// The number of entries that match, on the page or not.
  package private(set) var matchCount = 0

  /// Creates a finder that has not examined any entries.
  /// - Parameter isOrdered: Whether the entries will be examined in the order of their keys' bytes.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, or the selector needs a text index.
  package init(_ query: DocumentQuery, isOrdered: Bool) throws(SelectorError) {
    finder = try PageFinder(query, isOrdered: isOrdered)
  }

  /// Whether further entries can't change the page.
  package var isFinished: Bool { finder.isFinished }

  /// The memory of the handles and sort keys that are kept, in bytes.
  package var keptByteCount: Int { finder.keptByteCount }

  /// The key after which the page starts. Entries up to it need not be examined; nil if all must be.
  package var startKey: [UInt8]? { finder.startID }

  /// Adds an entry to the page if it is a document and matches.
  /// - Parameters:
  ///   - text: The value. It need not be JSON: values that aren't JSON objects match no query.
  ///   - key: The key, in UTF-8.
  package mutating func examine(_ text: Span<UInt8>, key: Span<UInt8>, revision: UInt64, handle: UInt32) {
    examinedCount += 1
    metadata.removeAll(keepingCapacity: true)
    JSONString.append(quoting: key, to: &metadata)
    let idCount = metadata.count
    if finder.needsRevision { metadata += JSONValue(revision: revision).encoded() }
    let isMatch = unsafe text.withUnsafeBufferPointer { text in
      unsafe metadata.withUnsafeBufferPointer { metadata in
        finder.examine(unsafe DocumentSource(text, metadata: metadata, idCount: idCount), handle)
      }
    }
    if isMatch { matchCount += 1 }
  }

  /// Returns the handles of the page's documents in its order, and the bookmark of the next page if there is one.
  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Complexity: O(*k* log *k*) comparisons of keys, where *k* is the number of handles that are kept.
  package consuming func page() -> (handles: [UInt32], bookmark: String?) {
    let page = finder.page()
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
  /// - Complexity: O(*n*) in the size of the text, times the number of names on each level.
  package func object(of text: Span<UInt8>, key: Span<UInt8>, revision: UInt64) -> [UInt8] {
    var metadata: [UInt8] = []
    JSONString.append(quoting: key, to: &metadata)
    let idCount = metadata.count
    metadata += JSONValue(revision: revision).encoded()
    return unsafe text.withUnsafeBufferPointer { text in
      unsafe metadata.withUnsafeBufferPointer { metadata in
        projection.object(of: unsafe DocumentSource(text, metadata: metadata, idCount: idCount))
      }
    }
  }
}
