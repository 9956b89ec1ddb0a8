import Documents

/// Indexes of the documents of a map. Every change of a record passes `beginIndexChange` before, and `endIndexChange`
/// after it.
extension EntryMap {
  /// - Parameter handle: A live record that is about to be removed, replaced or overwritten.
  @inline(__always)
  func beginIndexChange(of handle: UInt32) {
    if let indexes { indexes.beginChange(of: handle, record(handle)) }
  }

  /// Call this before the memory of a removed or replaced record is freed.
  /// - Parameter handle: The record that is live now; nil if there is none.
  @inline(__always)
  func endIndexChange(to handle: UInt32?) {
    if let indexes { indexes.endChange(to: handle, in: arena.records) }
  }

  /// Returns the record with a key if it has this revision.
  func handle(of key: Key, revision: UInt64) -> UInt32? {
    let handle = find(key, hash: hashIndex.hash(key))
    return handle != 0 && record(handle).revision == revision ? handle : nil
  }

  // MARK: The list

  /// Adds an index. It is complete at once if the map is empty; otherwise it waits to be built.
  /// - Parameter onLargeDocuments: Called under the store's lock when large documents wait for their keys.
  /// - Throws: `storeDropped`, `indexExists` or `tooManyIndexes`, with nothing changed.
  /// - Returns: Whether there was none with this definition.
  mutating func ensureIndex(
    _ definition: DocumentIndex, onLargeDocuments: @escaping @Sendable () -> Void = {}
  ) throws(StorageError) -> Bool {
    guard !isDropped else { throw removalError }
    let indexes = self.indexes ?? MapIndexes(onLargeDocuments: onLargeDocuments)
    if let existing = indexes.index(named: definition.name) {
      guard existing.definition == definition else { throw .indexExists(existing.definition) }
      return false
    }
    guard indexes.indexes.count < Store.maxIndexCount else { throw .tooManyIndexes(limit: Store.maxIndexCount) }
    indexes.add(MapIndex(definition, isComplete: order.count == 0))
    self.indexes = indexes
    revisions.didChange()
    return true
  }

  /// - Throws: `unknownIndex`.
  mutating func deleteIndex(named name: String) throws(StorageError) {
    guard let indexes, indexes.delete(named: name) else { throw .unknownIndex(name) }
    if indexes.isEmpty { self.indexes = nil }
    revisions.didChange()
  }

  /// Notes a change of the indexes that no change of an entry has brought.
  mutating func didChangeIndexes() { revisions.didChange() }

  var indexReports: [IndexReport] { indexes?.indexes.map(IndexReport.init) ?? [] }

  // MARK: Kept plans

  /// Returns the plan that is kept for a shape of finds, and the documents that the index has now between its bounds.
  /// - Returns: nil if no plan is kept, or if it can't be used now.
  package func keptPlan(
    for shape: FindShape, _ selector: Span<UInt8>, _ bounds: inout KeyBounds
  ) -> (plan: KeptPlan, documents: IndexedDocuments)? {
    guard let indexes, !isDiverted, let kept = indexes.plans.find(shape), let tree = kept.index.treeOfSingleKeys else {
      return nil
    }
    kept.plan.makeBounds(of: shape, selector, &bounds)
    return (kept.plan, IndexedDocuments(tree, tree.ranks(of: bounds, records: arena.records)))
  }

  /// Keeps a plan for a shape of finds.
  package func keep(_ plan: KeptPlan, for shape: FindShape, by definition: DocumentIndex) {
    guard let indexes, let index = indexes.index(named: definition.name), index.definition == definition else { return }
    indexes.plans.keep(plan, by: index, for: shape)
  }

  /// Calls `body` with some of the documents, in their order or in reverse, until it returns false. O(log n) plus the
  /// documents.
  /// - Parameter ranks: Which documents, among all of the index.
  @inline(__always)
  package func visit(
    _ documents: IndexedDocuments, _ ranks: Range<Int>, reverse: Bool, _ body: (UInt32, EntryView) -> Bool
  ) {
    documents.tree.visit(ranks, reverse: reverse, records: arena.records) { handle in
      body(handle, record(handle).view)
    }
  }

  // MARK: Reading

  /// Returns what a snapshot sees of the indexes, sorted by name. An index that was created or completed after the
  /// snapshot is not complete in it.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func indexes(in snapshot: Snapshot) throws(StorageError) -> [IndexView] {
    try check(snapshot)
    return indexes?.visibleIndexes.compactMap { $0.view(epoch: snapshot.epoch) } ?? []
  }

  /// Returns the ranks of the keys in a range. O(log n).
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func ranks(
    of range: KeyRange, in index: IndexView, of snapshot: Snapshot
  ) throws(StorageError) -> Range<Int> {
    try check(snapshot)
    return index.ranks(of: range, records: arena.records)
  }

  /// Returns the ranks of the entries whose keys are in a range. O(log n).
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func ranks(ofIDs range: KeyRange, in snapshot: Snapshot) throws(StorageError) -> Range<Int> {
    let (root, count) = try tree(of: snapshot)
    func rank(_ id: [UInt8]) -> Int { unsafe order.rank(Key(id.span.bytes), .lower, root: root, in: arena.records) }
    let lower = range.lower.isEmpty ? 0 : rank(range.lower)
    let upper = range.upper.map(rank) ?? count
    return lower..<max(lower, upper)
  }

  /// Calls `body` with the handles and the entries of the documents that have the keys of these ranks, in order or in
  /// reverse, until it returns false. Skips expired entries, though their ranks count. O(log n) plus the entries read.
  /// - Returns: The number of ranks consumed. The next call continues after them.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func scan(
    ranks: Range<Int>, of index: IndexView, reverse: Bool, in snapshot: Snapshot, now: UInt64,
    _ body: (UInt32, EntryView) -> Bool
  ) throws(StorageError) -> Int {
    try check(snapshot)
    return index.visit(ranks, reverse: reverse, records: arena.records) { handle in
      let record = record(handle)
      return record.isExpired(at: now) || body(handle, record.view)
    }
  }

  /// Calls `body` with the handle and the entry of the first document of each group that the keys of these ranks have,
  /// and with the number of its keys, until it returns false. A group has the keys with the same values in the first
  /// fields. Doesn't skip expired entries. O(log n) for each group.
  /// - Precondition: The ranks have no overflow key.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func scanGroups(
    ranks: Range<Int>, by fieldCount: Int, of index: IndexView, in snapshot: Snapshot,
    _ body: (UInt32, EntryView, Int) -> Bool
  ) throws(StorageError) {
    try check(snapshot)
    index.visitGroups(ranks, by: fieldCount, records: arena.records) { handle, count in
      body(handle, record(handle).view, count)
    }
  }

  /// Returns about how many groups the keys of these ranks have; exactly if they are few. It reads up to 64 keys.
  /// - Precondition: The ranks have no overflow key.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func estimatedGroupCount(
    ranks: [Range<Int>], by fieldCount: Int, of index: IndexView, in snapshot: Snapshot
  ) throws(StorageError) -> Int {
    try check(snapshot)
    return index.estimatedGroupCount(ranks, by: fieldCount, records: arena.records)
  }
}

/// What a snapshot sees of an index.
package struct IndexView: Sendable {
  /// For the planner. Nothing can be read of an index that isn't complete.
  package let planned: PlannedIndex
  private let tree: IndexTree?
  private let view: IndexTree.View?

  /// - Parameter tree: The tree that has the view; nil if the index is not complete.
  init(_ definition: DocumentIndex, _ tree: IndexTree?, _ view: IndexTree.View?) {
    let figures = view?.figures ?? IndexTree.Figures()
    planned = PlannedIndex(
      definition, isComplete: view != nil, multiFields: figures.multiFields, overflowCount: figures.overflowCount,
      entryCount: figures.entryCount)
    self.tree = tree
    self.view = view
  }

  fileprivate func ranks(of range: KeyRange, records: Records) -> Range<Int> {
    guard let tree, let view else { return 0..<0 }
    return tree.ranks(of: range, in: view, records: records)
  }

  fileprivate func visit(
    _ ranks: Range<Int>, reverse: Bool, records: Records, _ body: (UInt32) -> Bool
  ) -> Int {
    guard let tree, let view else { return ranks.count }
    return tree.visit(ranks, reverse: reverse, in: view, records: records, body)
  }

  fileprivate func visitGroups(
    _ ranks: Range<Int>, by fieldCount: Int, records: Records, _ body: (UInt32, Int) -> Bool
  ) {
    guard let tree, let view else { return }
    tree.visitGroups(ranks, by: fieldCount, IndexLayout(planned.index), in: view, records: records, body)
  }

  fileprivate func estimatedGroupCount(_ ranks: [Range<Int>], by fieldCount: Int, records: Records) -> Int {
    guard let tree, let view else { return 0 }
    return tree.estimatedGroupCount(ranks, by: fieldCount, IndexLayout(planned.index), in: view, records: records)
  }
}

/// Documents that an index has next to each other. Valid until its map's next change.
package struct IndexedDocuments {
  fileprivate let tree: IndexTree
  /// Their places among all documents of the index.
  package let ranks: Range<Int>

  init(_ tree: IndexTree, _ ranks: Range<Int>) { (self.tree, self.ranks) = (tree, ranks) }
}

/// What a store knows of one of its indexes.
package struct IndexReport: Equatable, Sendable {
  package let index: DocumentIndex
  package let state: IndexState
  package let entryCount: Int
  package let documentCount: Int
  /// The number of documents with too many or too large keys, or whose values are so large that their keys are yet to
  /// be made.
  package let overflowCount: Int
  /// The paths of fields that have more than one value in a document.
  package let arrayFields: [FieldPath]
  package let memoryBytes: Int

  init(_ index: MapIndex) {
    let figures = index.figures
    self.index = index.definition
    state = index.state
    entryCount = figures.entryCount
    documentCount = figures.documentCount
    overflowCount = figures.overflowCount
    arrayFields = index.definition.fields.enumerated().compactMap { number, field in
      figures.multiFields & 1 << UInt32(number) != 0 ? field.path : nil
    }
    memoryBytes = index.memoryBytes
  }
}

/// How complete an index is.
package enum IndexState: Equatable, Sendable {
  case complete
  /// The fraction of the build that is done, from 0 to 1.
  case building(Double)
  /// It has no documents until the store is opened again, because the system refused memory.
  case failed(StorageError)
}
