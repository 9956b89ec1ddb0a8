import Documents

/// The entries of one index, in their order: for each document its keys, or the overflow key.
///
/// What a view sees of it stays as it is until the view ends: nodes are copied before they change, and entries of
/// documents that a view may see are kept. Used under its store's lock, or by the one thread that builds it.
final class IndexTree: @unchecked Sendable {
  /// What a snapshot of the map sees of the tree.
  struct View {
    let epoch: UInt64
    /// The revision of the snapshot, which sees no newer documents.
    let revision: UInt64
    fileprivate let root: UInt32
    let figures: Figures
    fileprivate var retainedEntries: [(entry: UInt32, revision: UInt64)] = []
    fileprivate var retainedNodes: [UInt32] = []
    /// The bytes of these entries and nodes.
    fileprivate var retainedBytes = 0
  }

  /// How many entries and documents an index has, and which fields have several keys in a document.
  struct Figures: Equatable {
    var entryCount = 0
    var documentCount = 0
    /// The number of documents whose only key is the overflow key.
    var overflowCount = 0
    /// Fields that have more than one key in a document, as bits.
    var multiFields: UInt32 = 0
  }

  /// What is known of a document whose value isn't in its record, so that it can be removed without the value.
  private struct KeptDocument {
    var entries: [UInt32] = []
    let multiFields: UInt32
    let isOverflow: Bool

    var memoryBytes: Int { 64 + entries.count * MemoryLayout<UInt32>.stride }
  }

  private var arena = Arena()
  private var order = OrderTree<IndexEntries>()
  private var keptDocuments: [UInt32: KeptDocument] = [:]
  private var keptDocumentBytes = 0
  private var documentCount = 0
  private var overflowCount = 0
  /// For each field, the number of documents that have more than one key in it.
  private var multiCounts: [Int]
  /// Oldest first.
  private var views: [View] = []
  /// The views that have ended, with what is still to be reclaimed of them.
  private var endedViews: [View] = []
  /// The bytes of entries and nodes that only views see or saw.
  private var retainedBytes = 0
  /// The bytes of entries and nodes that are kept for views.
  private(set) var visibleBytes = 0

  init(fieldCount: Int) { multiCounts = Array(repeating: 0, count: fieldCount) }

  var figures: Figures {
    var multiFields: UInt32 = 0
    for (field, count) in multiCounts.enumerated() where count > 0 { multiFields |= 1 << UInt32(field) }
    return Figures(
      entryCount: order.count, documentCount: documentCount, overflowCount: overflowCount, multiFields: multiFields)
  }

  /// The memory of entries, nodes, and all that is kept for views.
  var memoryBytes: Int { pagedBytes + keptDocumentBytes }
  /// Those of them that are in pages of their own.
  var pagedBytes: Int { arena.memoryBytes + order.memoryBytes }
  /// The bytes that count toward a store's memory limit: those of entries and nodes, without free space and without
  /// what only views see.
  var limitedBytes: Int {
    arena.unitsInUse * 8 + order.nodesInUse * OrderNode.byteCount + keptDocumentBytes - retainedBytes
  }
  var isEmpty: Bool { order.count == 0 && keptDocuments.isEmpty }
  var hasViews: Bool { !views.isEmpty }
  /// Whether anything is still to be reclaimed of views that have ended.
  var hasEndedViews: Bool { !endedViews.isEmpty }

  @inline(__always)
  private func entries(of records: Records) -> IndexEntries { IndexEntries(arena.view, of: records) }

  // MARK: Documents

  /// A document in a tree: a record, and the tree's information about it.
  struct Document {
    let handle: UInt32
    let revision: UInt64
    let id: Key
    /// Whether its value may leave the memory.
    let isExternal: Bool

    init(_ handle: UInt32, revision: UInt64, id: Key, isExternal: Bool) {
      self.handle = handle
      self.revision = revision
      self.id = id
      self.isExternal = isExternal
    }

    init(_ handle: UInt32, _ record: Record) {
      self.init(handle, revision: record.revision, id: record.key, isExternal: record.isExternal)
    }
  }

  /// Adds the entries of a document.
  /// - Parameter number: The number of this index among those of the keys.
  /// - Throws: `outOfMemory` or `storeFull`. Some of the entries may have been added then.
  func insert(
    _ document: Document, _ keys: borrowing IndexKeys, _ number: Int, in records: Records
  ) throws(StorageError) {
    let count = keys.count(of: number)
    guard count > 0 else { return }
    var kept: [UInt32] = []
    for index in 0..<count {
      try order.reserve()
      let key = key(index, of: number, in: keys)
      let entry = try arena.allocate(units: IndexEntry.units(keyLength: key.count))
      unsafe IndexEntry(at: arena.address(entry)).initialize(key: key, document: document.handle)
      let entries = entries(of: records)
      order.insert(entry, key: IndexEntries.SearchKey(key: key, id: document.id), in: entries)
      if document.isExternal { kept.append(entry) }
    }
    retireNodes()
    note(document, keys, number, kept)
  }

  /// The key stays in place until the keys change.
  @inline(__always)
  private func key(_ index: Int, of number: Int, in keys: borrowing IndexKeys) -> Key {
    let range = keys.range(of: index, in: number)
    return unsafe Key(keys.bytes.span.bytes.extracting(range))
  }

  private func note(_ document: Document, _ keys: borrowing IndexKeys, _ number: Int, _ kept: [UInt32]) {
    let (multiFields, isOverflow) = (keys.multiFields(of: number), keys.isOverflow(of: number))
    count(multiFields, isOverflow, by: 1)
    guard document.isExternal else { return }
    let keptDocument = KeptDocument(entries: kept, multiFields: multiFields, isOverflow: isOverflow)
    keptDocuments[document.handle] = keptDocument
    keptDocumentBytes += keptDocument.memoryBytes
  }

  private func count(_ multiFields: UInt32, _ isOverflow: Bool, by change: Int) {
    documentCount += change
    if isOverflow { overflowCount += change }
    var fields = multiFields
    while fields != 0 {
      multiCounts[fields.trailingZeroBitCount] += change
      fields &= fields - 1
    }
  }

  /// Returns whether the tree has the entries of a document.
  func contains(_ document: Document, _ keys: borrowing IndexKeys, _ number: Int, in records: Records) -> Bool {
    if document.isExternal { return keptDocuments[document.handle] != nil }
    guard keys.count(of: number) > 0 else { return false }
    return find(key(0, of: number, in: keys), document, in: entries(of: records)) != nil
  }

  /// Returns the entry of a document with a key.
  private func find(_ key: Key, _ document: Document, in entries: IndexEntries) -> UInt32? {
    let entry = order.last(notAfter: IndexEntries.SearchKey(key: key, id: document.id), in: entries)
    guard entry != 0, entries.entry(entry).document == document.handle, entries.key(of: entry).equals(key) else {
      return nil
    }
    return entry
  }

  private func entry(_ key: Key, of document: Document, in entries: IndexEntries) -> UInt32 {
    guard let entry = find(key, document, in: entries) else { preconditionFailure("an index lacks an entry") }
    return entry
  }

  /// Removes the entries of a document.
  /// - Parameter keys: Its keys, which don't matter if it is external.
  /// - Throws: `outOfMemory` or `storeFull`. Some of the entries may have been removed then.
  func remove(
    _ document: Document, _ keys: borrowing IndexKeys, _ number: Int, in records: Records
  ) throws(StorageError) {
    guard !document.isExternal else { return try removeExternal(document, in: records) }
    guard keys.count(of: number) > 0 else { return }
    for index in 0..<keys.count(of: number) {
      let key = key(index, of: number, in: keys)
      try remove(entry(key, of: document, in: entries(of: records)), of: document, in: records)
    }
    retireNodes()
    count(keys.multiFields(of: number), keys.isOverflow(of: number), by: -1)
  }

  private func removeExternal(_ document: Document, in records: Records) throws(StorageError) {
    guard let kept = keptDocuments.removeValue(forKey: document.handle) else { return }
    keptDocumentBytes -= kept.memoryBytes
    for entry in kept.entries { try remove(entry, of: document, in: records) }
    retireNodes()
    count(kept.multiFields, kept.isOverflow, by: -1)
  }

  private func remove(_ entry: UInt32, of document: Document, in records: Records) throws(StorageError) {
    if hasViews { try order.reserve() }
    let entries = entries(of: records)
    order.remove(entry, key: IndexEntries.SearchKey(key: entries.key(of: entry), id: document.id), in: entries)
    retire(entry, of: document)
  }

  /// Makes the entries of a document refer to another record, which has the same keys. Neither record is external.
  /// - Throws: `outOfMemory` or `storeFull`. Some of the entries may refer to the new record then.
  func move(
    _ old: Document, to new: Document, _ keys: borrowing IndexKeys, _ number: Int, in records: Records
  ) throws(StorageError) {
    let isShared = isShared(old)
    for index in 0..<keys.count(of: number) {
      let key = key(index, of: number, in: keys)
      let entry = entry(key, of: old, in: entries(of: records))
      guard isShared else {
        entries(of: records).entry(entry).document = new.handle
        continue
      }
      try order.reserve()
      let replacement = try arena.allocate(units: IndexEntry.units(keyLength: key.count))
      unsafe IndexEntry(at: arena.address(replacement)).initialize(key: key, document: new.handle)
      let entries = entries(of: records)
      order.replace(entry, with: replacement, key: IndexEntries.SearchKey(key: key, id: old.id), in: entries)
      retire(entry, of: old)
    }
    retireNodes()
  }

  // MARK: Views

  /// Whether a view may see a document.
  private func isShared(_ document: Document) -> Bool { document.revision <= views.last?.revision ?? 0 }

  /// Frees an entry that has left the tree: now, or when the last view that sees it ends.
  private func retire(_ entry: UInt32, of document: Document) {
    let units = unsafe IndexEntry(at: arena.address(entry)).units
    guard isShared(document) else { return arena.free(entry, units: units) }
    views[views.count - 1].retainedEntries.append((entry, document.revision))
    countRetained(Int(units) * 8)
  }

  private func retireNodes() {
    guard !order.replacedNodes.isEmpty else { return }
    if views.isEmpty {
      for node in order.replacedNodes { order.free(node) }
    } else {
      views[views.count - 1].retainedNodes += order.replacedNodes
      countRetained(order.replacedNodes.count * OrderNode.byteCount)
    }
    order.forgetReplacedNodes()
  }

  private func countRetained(_ byteCount: Int) {
    views[views.count - 1].retainedBytes += byteCount
    visibleBytes += byteCount
    retainedBytes += byteCount
  }

  /// Begins a view for a snapshot of the map.
  func beginView(epoch: UInt64, revision: UInt64) {
    views.append(View(epoch: epoch, revision: revision, root: order.root, figures: figures))
    order.beginEpoch(after: epoch)
  }

  /// Ends the view of a snapshot, if the tree has one. `reclaim` frees what only it could see.
  func endView(epoch: UInt64) {
    guard let index = views.firstIndex(where: { $0.epoch == epoch }) else { return }
    let ended = views.remove(at: index)
    visibleBytes -= ended.retainedBytes
    order.endEpochs(after: views.last?.epoch ?? 0)
    if ended.retainedBytes > 0 { endedViews.append(ended) }
  }

  /// Frees entries and nodes that were kept for views that have ended, or passes them to the next older views.
  /// - Parameter limit: The maximum number of entries and nodes.
  /// - Returns: How many there were.
  func reclaim(limit: Int) -> Int {
    var count = 0
    while count < limit, let last = endedViews.indices.last {
      let older = views.lastIndex { $0.epoch < endedViews[last].epoch }
      while count < limit, let node = endedViews[last].retainedNodes.popLast() {
        reclaim(node: node, older)
        count += 1
      }
      while count < limit, let (entry, revision) = endedViews[last].retainedEntries.popLast() {
        reclaim(entry: entry, revision, older)
        count += 1
      }
      if count < limit { endedViews.removeLast() }
    }
    return count
  }

  /// - Parameter older: The next older view.
  private func reclaim(node: UInt32, _ older: Int?) {
    if let older, order.epoch(of: node) <= views[older].epoch {
      views[older].retainedNodes.append(node)
      views[older].retainedBytes += OrderNode.byteCount
      visibleBytes += OrderNode.byteCount
    } else {
      order.free(node)
      retainedBytes -= OrderNode.byteCount
    }
  }

  private func reclaim(entry: UInt32, _ revision: UInt64, _ older: Int?) {
    let units = unsafe IndexEntry(at: arena.address(entry)).units
    if let older, revision <= views[older].revision {
      views[older].retainedEntries.append((entry, revision))
      views[older].retainedBytes += Int(units) * 8
      visibleBytes += Int(units) * 8
    } else {
      arena.free(entry, units: units)
      retainedBytes -= Int(units) * 8
    }
  }

  func view(epoch: UInt64) -> View? { views.last { $0.epoch == epoch } }

  /// Whether each document has one key, which isn't the overflow key.
  var hasOneKeyEach: Bool { overflowCount == 0 && multiCounts.allSatisfy { $0 == 0 } }

  // MARK: Reading

  /// Returns the ranks of the entries whose keys are in a range. O(log n).
  func ranks(of range: KeyRange, in view: View, records: Records) -> Range<Int> {
    let lower = range.lower.isEmpty ? 0 : rank(of: range.lower, root: view.root, records)
    let upper = range.upper.map { rank(of: $0, root: view.root, records) } ?? view.figures.entryCount
    return lower..<max(lower, upper)
  }

  /// Returns the ranks that the entries whose keys are in a range have now. O(log n).
  func ranks(of bounds: KeyBounds, records: Records) -> Range<Int> {
    let lower = rank(of: bounds.lower, root: order.root, records)
    let upper = bounds.upper.isEmpty ? order.count : rank(of: bounds.upper, root: order.root, records)
    return lower..<max(lower, upper)
  }

  private func rank(of key: [UInt8], root: UInt32, _ records: Records) -> Int {
    order.rank(
      unsafe IndexEntries.SearchKey(key: Key(key.span.bytes), id: nil), .lower, root: root, in: entries(of: records))
  }

  /// Calls `body` with the handles of the documents that have these ranks now, in order or in reverse, until it returns
  /// false.
  @inline(__always)
  func visit(_ ranks: Range<Int>, reverse: Bool, records: Records, _ body: (UInt32) -> Bool) {
    let entries = entries(of: records)
    _ = order.visit(ranks, reverse: reverse, root: order.root, in: entries) { body(entries.entry($0).document) }
  }

  /// Calls `body` with the handles of the documents of these ranks, in order or in reverse, until it returns false.
  /// - Returns: The number of ranks that `body` was called with.
  func visit(
    _ ranks: Range<Int>, reverse: Bool, in view: View, records: Records, _ body: (UInt32) -> Bool
  ) -> Int {
    let entries = entries(of: records)
    return order.visit(ranks, reverse: reverse, root: view.root, in: entries) { body(entries.entry($0).document) }
  }

  /// Calls `body` with the handle of the first document of each group that these ranks have, and with the number of the
  /// group's ranks, until it returns false. A group has the keys with the same values in the first fields.
  func visitGroups(
    _ ranks: Range<Int>, by fieldCount: Int, _ layout: IndexLayout, in view: View, records: Records,
    _ body: (UInt32, Int) -> Bool
  ) {
    let entries = entries(of: records)
    var rank = ranks.lowerBound
    while rank < ranks.upperBound {
      let entry = entries.entry(entry(at: rank, in: view, entries))
      let values = Self.firstFields(fieldCount, of: entry.key, layout)
      let group = self.ranks(
        of: KeyRange(lower: [], upper: IndexRange.successor(of: values)), in: view, records: records)
      let end = min(group.upperBound, ranks.upperBound)
      guard body(entry.document, end - rank) else { return }
      rank = end
    }
  }

  /// The number of ranks that are looked at to estimate the number of groups.
  private static let sampleCount = 32

  /// Returns about how many groups some ranges of ranks have: as many as keys that differ from the one before.
  func estimatedGroupCount(
    _ ranges: [Range<Int>], by fieldCount: Int, _ layout: IndexLayout, in view: View, records: Records
  ) -> Int {
    let entries = entries(of: records)
    let count = ranges.reduce(0) { $0 + $1.count }
    let sampleCount = min(count, Self.sampleCount)
    var (firstCount, range, rangeStart) = (0, 0, 0)
    for sample in 0..<sampleCount {
      let (start, end) = (count * sample / sampleCount, count * (sample + 1) / sampleCount)
      // Not at equal distances, which may be multiples of the size of groups.
      let number = start + Int(truncatingIfNeeded: UInt64(sample) &* 0x9E37_79B9_7F4A_7C15 >> 32) % (end - start)
      while number >= rangeStart + ranges[range].count {
        rangeStart += ranges[range].count
        range += 1
      }
      let rank = ranges[range].lowerBound + number - rangeStart
      func values(at rank: Int) -> [UInt8] {
        Self.firstFields(fieldCount, of: entries.key(of: entry(at: rank, in: view, entries)), layout)
      }
      if rank == ranges[range].lowerBound || values(at: rank - 1) != values(at: rank) { firstCount += 1 }
    }
    // Every range has a group.
    return max(ranges.count { !$0.isEmpty }, sampleCount == 0 ? 0 : firstCount * count / sampleCount)
  }

  private func entry(at rank: Int, in view: View, _ entries: IndexEntries) -> UInt32 {
    var found: UInt32 = 0
    _ = order.visit(rank..<rank + 1, reverse: false, root: view.root, in: entries) { entry in
      found = entry
      return false
    }
    return found
  }

  /// Returns the bytes of a key's first fields.
  private static func firstFields(_ count: Int, of key: Key, _ layout: IndexLayout) -> [UInt8] {
    let bytes = unsafe UnsafeRawBufferPointer(start: key.start, count: key.count).assumingMemoryBound(to: UInt8.self)
    return unsafe Array(bytes.prefix(layout.size(ofFields: count, in: bytes.span)))
  }

  /// Returns some document of the tree; 0 if there is none.
  func anyDocument(in records: Records) -> UInt32 {
    var document: UInt32 = 0
    let entries = entries(of: records)
    _ = order.visit(0..<min(1, order.count), reverse: false, root: order.root, in: entries) { entry in
      document = entries.entry(entry).document
      return false
    }
    return document
  }

  // MARK: Building

  /// Adds the entries of a document to those that `build` will order. Documents come in the order of their ids.
  /// - Throws: `outOfMemory` or `storeFull`.
  func append(
    _ document: Document, _ keys: borrowing IndexKeys, _ number: Int, to unordered: inout SortedKeys
  ) throws(StorageError) {
    let count = keys.count(of: number)
    guard count > 0 else { return }
    var kept: [UInt32] = []
    for index in 0..<count {
      let key = key(index, of: number, in: keys)
      let entry = try arena.allocate(units: IndexEntry.units(keyLength: key.count))
      unsafe IndexEntry(at: arena.address(entry)).initialize(key: key, document: document.handle)
      unordered.append(entry, key)
      if document.isExternal { kept.append(entry) }
    }
    note(document, keys, number, kept)
  }

  /// Orders all entries, each of which was appended.
  /// - Throws: `outOfMemory` or `storeFull`.
  func build(_ unordered: consuming SortedKeys) throws(StorageError) {
    unordered.sort(in: IndexEntryKeys(arena.view))
    try order.build(unordered)
  }
}
