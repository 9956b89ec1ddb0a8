/// A range of byte strings: the keys of an index in its own order, or ids.
package struct KeyRange: Equatable, Sendable {
  /// The first string in the range.
  package let lower: [UInt8]
  /// The first string behind the range; nil if there is none.
  package let upper: [UInt8]?

  package init(lower: [UInt8], upper: [UInt8]?) {
    self.lower = lower
    self.upper = upper
  }

  /// All ids.
  package static let all = KeyRange(lower: [], upper: nil)
  /// All keys of an index but the overflow key.
  package static let allKeys = KeyRange(lower: [1], upper: nil)
  /// The overflow key: that of documents which have too many or too large keys in an index.
  package static let overflow = KeyRange(lower: [0], upper: [1])

  package func contains(_ bytes: [UInt8]) -> Bool {
    !bytes.lexicographicallyPrecedes(lower) && upper.map { bytes.lexicographicallyPrecedes($0) } ?? true
  }
}

/// What is known of an index at one point in time.
package struct PlannedIndex: Sendable {
  package let index: DocumentIndex
  /// Whether every document is in the index that belongs there. An index that is being built is not complete.
  package let isComplete: Bool
  /// The fields for which some document has more than one key, or an array: bit *f* stands for field *f*.
  package let multiFields: UInt32
  /// The number of documents that have the overflow key.
  package let overflowCount: Int
  /// The number of entries, with those of the overflow key.
  package let entryCount: Int

  package init(_ index: DocumentIndex, isComplete: Bool, multiFields: UInt32, overflowCount: Int, entryCount: Int) {
    self.index = index
    self.isComplete = isComplete
    self.multiFields = multiFields
    self.overflowCount = overflowCount
    self.entryCount = entryCount
  }
}

/// Counts keys for the planner.
package protocol KeyCounter {
  /// Returns the number of keys in a range, in O(log *n*).
  /// - Parameter number: The position of the index among the planner's; nil for ids.
  mutating func count(_ range: KeyRange, ofIndex number: Int?) -> Int

  /// Returns about how many groups the keys in ranges of an index have. A group has the keys with the same values in the
  /// first fields.
  mutating func groupCount(_ ranges: [KeyRange], ofIndex number: Int, fieldCount: Int) -> Int
}

/// How to find the documents of a query.
package struct FindPlan: Equatable, Sendable {
  /// Where candidates come from. Every document that matches is among them.
  package indirect enum Source: Equatable, Sendable {
    /// The entries whose ids are in ranges, which are disjoint and ascend. The range of all ids is a scan.
    case ids([KeyRange])
    /// The documents whose keys in an index are in ranges, which are disjoint and ascend, and those that have the
    /// overflow key there. A document can occur more than once.
    case index(Int, [KeyRange])
    /// The documents of any source.
    case union([Source])
    /// The documents that all sources have.
    case intersection([Source])
    case nothing
  }

  package let source: Source
  /// Whether to read the ranges from the end of the last to the start of the first.
  package let isReversed: Bool
  /// Whether the candidates come in the order of the query, with ties in their order, too. No document then occurs more
  /// than once.
  package let isOrdered: Bool
  /// Whether every key in the ranges stands for one document, which matches, and no other document does: nothing needs
  /// to be evaluated, and the matches can be counted and skipped by arithmetic.
  package let isExact: Bool
  /// The number of the index's first fields that make groups: an exact plan for groups needs one document of each, and
  /// the number of its keys. nil if all documents are needed.
  package let groupFieldCount: Int?

  package init(
    _ source: Source, isReversed: Bool = false, isOrdered: Bool, isExact: Bool, groupFieldCount: Int? = nil
  ) {
    self.source = source
    self.isReversed = isReversed
    self.isOrdered = isOrdered
    self.isExact = isExact
    self.groupFieldCount = groupFieldCount
  }

  /// A plan that evaluates every entry.
  package static let scan = FindPlan(.ids([.all]), isOrdered: false, isExact: false)
}
