import Documents

/// The indexes of a map. Every change of a document goes through it, in two steps around the change itself.
///
/// The keys of a document whose value isn't in its record are made later by an `IndexBuilder`, without the store's lock;
/// until then, it has the overflow key. An index never refuses a write: without memory for its entries it fails, and is
/// built again when the store is opened.
///
/// Used under its store's lock.
final class MapIndexes: @unchecked Sendable {
  /// Sorted by name.
  private(set) var indexes: [MapIndex] = []
  /// Indexes that were deleted, but that views see.
  private var formerIndexes: [MapIndex] = []
  /// Whether anything is still to be reclaimed of views that have ended.
  private(set) var hasEndedViews = false
  /// The plans of finds, which a deleted index ends.
  var plans = KeptPlans<MapIndex>()
  private var maker: IndexKeyMaker
  private var oldKeys = IndexKeys()
  private var newKeys = IndexKeys()
  /// The document whose change has begun.
  private var old: IndexTree.Document?
  /// The revision of the snapshot from before a large commit, while a slice of that changes documents; nil otherwise.
  private var deferringRevision: UInt64?
  /// A change of a large commit that some of the indexes lack: those from `next` on.
  private var deferredChange: (old: IndexTree.Document?, new: IndexTree.Document?, next: Int)?
  /// The large documents whose keys are to be made.
  private var largeDocuments: [LargeDocument] = []
  /// Called when there are large documents after there were none.
  private let onLargeDocuments: @Sendable () -> Void

  /// A document whose value isn't in its record.
  struct LargeDocument {
    let key: [UInt8]
    let revision: UInt64
  }

  init(onLargeDocuments: @escaping @Sendable () -> Void) {
    maker = Self.maker(of: [])
    self.onLargeDocuments = onLargeDocuments
  }

  static func maker(of indexes: [MapIndex]) -> IndexKeyMaker {
    do throws(SelectorError) { return try IndexKeyMaker(indexes.map(\.definition)) } catch {
      preconditionFailure("a definition was checked when it was made: \(error)")
    }
  }

  var isEmpty: Bool { indexes.isEmpty && formerIndexes.isEmpty }
  var memoryBytes: Int { (indexes + formerIndexes).reduce(0) { $0 + $1.memoryBytes } }
  var pagedBytes: Int { (indexes + formerIndexes).reduce(0) { $0 + $1.pagedBytes } }
  /// The bytes of entries and nodes that are kept for the views of living snapshots.
  var visibleBytes: Int { (indexes + formerIndexes).reduce(0) { $0 + $1.visibleBytes } }
  var limitedBytes: Int { indexes.reduce(0) { $0 + $1.limitedBytes } }

  // MARK: The list

  func index(named name: String) -> MapIndex? {
    indexes.first { $0.definition.name.utf8.elementsEqual(name.utf8) }
  }

  func add(_ index: MapIndex) {
    indexes.append(index)
    indexes.sort { $0.definition.name.utf8.lexicographicallyPrecedes($1.definition.name.utf8) }
    maker = Self.maker(of: indexes)
  }

  /// - Returns: Whether there was such an index.
  func delete(named name: String) -> Bool {
    guard let index = index(named: name) else { return false }
    indexes.removeAll { $0 === index }
    index.removeAll()
    plans.removeAll()
    if index.hasViews { formerIndexes.append(index) }
    maker = Self.maker(of: indexes)
    return true
  }

  // MARK: Documents

  /// Prepares for the removal or the change of a record.
  func beginChange(of handle: UInt32, _ record: Record) {
    precondition(deferredChange == nil, "the indexes lack another change")
    old = IndexTree.Document(handle, record)
    if !record.isExternal { makeKeys(of: record, into: &oldKeys) }
  }

  /// Notes that the record, whose memory must still be there, is in no other index of the map any more, or that its
  /// value has changed.
  /// - Parameter new: The record in its place, which may be the same; or a new one if no change has begun.
  func endChange(to new: UInt32?, in records: Records) {
    let old = old.take()
    let new = new.map { IndexTree.Document($0, records.record($0)) }
    if let new { makeKeys(of: records.record(new.handle), into: &newKeys) }
    if mustDefer(old, new) {
      deferredChange = (old, new, next: 0)
    } else {
      for number in indexes.indices { change(old, new, number, in: records) }
    }
    if let new, new.isExternal, records.record(new.handle).kind == .single {
      let key = unsafe Array(UnsafeRawBufferPointer(start: new.id.start, count: new.id.count))
      postpone(LargeDocument(key: key, revision: new.revision))
    }
  }

  private func change(
    _ old: IndexTree.Document?, _ new: IndexTree.Document?, _ number: Int, in records: Records
  ) {
    let index = indexes[number]
    switch (old, new) {
    case (let old?, let new?): index.replace(old, oldKeys, with: new, newKeys, number, in: records)
    case (let old?, nil): index.remove(old, oldKeys, number, in: records)
    case (nil, let new?): index.insert(new, newKeys, number, in: records)
    case (nil, nil): break
    }
  }

  // MARK: Large commits

  /// The number of keys of a document from which on its change is deferred.
  private static let minDeferredKeyCount = 128

  /// Begins or ends a slice of a large commit, in which changes of documents with many keys are deferred.
  /// - Parameter revision: The revision of the snapshot from before the commit; nil at the end of the slice.
  func deferChanges(after revision: UInt64?) { deferringRevision = revision }

  /// Whether a change of a large commit is incomplete. The map must not be changed otherwise until it is complete.
  var hasDeferredChange: Bool { deferredChange != nil }

  /// Makes a deferred change in one more index.
  /// - Returns: Whether there are others.
  func continueChange(in records: Records) -> Bool {
    guard let (old, new, next) = deferredChange else { return false }
    if next < indexes.count { change(old, new, next, in: records) }
    deferredChange = next + 1 < indexes.count ? (old, new, next + 1) : nil
    return hasDeferredChange
  }

  /// Whether a change is deferred. The old record must stay until the change is complete, so the snapshot must see it.
  private func mustDefer(_ old: IndexTree.Document?, _ new: IndexTree.Document?) -> Bool {
    guard let deferringRevision, old?.revision ?? 0 <= deferringRevision else { return false }
    var count = 0
    for number in indexes.indices {
      if let old, !old.isExternal { count += oldKeys.count(of: number) }
      if new != nil { count += newKeys.count(of: number) }
    }
    return count >= Self.minDeferredKeyCount
  }

  /// The number of keys that a document has in an index on average, at least 1, and the indexes that have documents with
  /// several keys in a field, or too few documents to tell.
  var keyCounts: (average: Int, multiple: Int) {
    indexes.reduce(into: (0, 0)) { counts, index in
      let figures = index.figures
      counts.0 += max(1, figures.entryCount / max(1, figures.documentCount))
      if figures.multiFields != 0 || figures.documentCount < Self.minKnownCount { counts.1 += 1 }
    }
  }

  /// The number of documents that shows whether an index has documents with several keys.
  private static let minKnownCount = 100

  /// Frees all documents, because the indexes are gone.
  func discard() { for index in indexes + formerIndexes { index.discard() } }

  /// Leaves the keys of a large document to the builder.
  func postpone(_ document: LargeDocument) {
    largeDocuments.append(document)
    if largeDocuments.count == 1 { onLargeDocuments() }
  }

  /// Returns a large document whose keys are to be made; nil if there are no more.
  func takeLargeDocument() -> LargeDocument? {
    if indexes.isEmpty { largeDocuments = [] }
    return largeDocuments.popLast()
  }

  /// Replaces the overflow key of a large document with its keys, made by `maker(of: indexes)`.
  func refine(_ document: IndexTree.Document, _ keys: borrowing IndexKeys, in records: Records) {
    for (number, index) in indexes.enumerated() { index.refine(document, keys, number, in: records) }
  }

  private func makeKeys(of record: Record, into keys: inout IndexKeys) {
    Self.makeKeys(of: record, maker, count: indexes.count, into: &keys)
  }

  /// Makes the keys of a document in a number of indexes, or the overflow key if its value isn't in its record.
  static func makeKeys(of record: Record, _ maker: IndexKeyMaker, count: Int, into keys: inout IndexKeys) {
    let view = record.view
    let key = unsafe view.key.assumingMemoryBound(to: UInt8.self).span
    guard view.kind == .single else {
      return maker.makeKeys(of: Span(), key: key, revision: view.revision, into: &keys)
    }
    guard !view.isExternal, let value = unsafe view.value else {
      return keys.setOverflow(inIndexes: count)
    }
    unsafe maker.makeKeys(
      of: value.assumingMemoryBound(to: UInt8.self).span, key: key, revision: view.revision, into: &keys)
  }

  func removeAll() {
    for index in indexes { index.removeAll() }
  }

  // MARK: Views

  func beginViews(epoch: UInt64, revision: UInt64) {
    for index in indexes { index.beginView(epoch: epoch, revision: revision) }
  }

  func endViews(epoch: UInt64) {
    for index in indexes + formerIndexes { index.endView(epoch: epoch) }
    formerIndexes.removeAll { !$0.hasViews }
    updateHasEndedViews()
  }

  private func updateHasEndedViews() { hasEndedViews = (indexes + formerIndexes).contains(where: \.hasEndedViews) }

  /// Frees entries and nodes that were kept for views that have ended.
  /// - Parameter limit: The maximum number of entries and nodes.
  /// - Returns: How many there were.
  func reclaim(limit: Int) -> Int {
    guard hasEndedViews else { return 0 }
    let count = (indexes + formerIndexes).reduce(0) { $0 + $1.reclaim(limit: limit - $0) }
    updateHasEndedViews()
    return count
  }

  /// The indexes that a snapshot may see.
  var visibleIndexes: [MapIndex] { indexes + formerIndexes }
}
