// An index, from its definition to its entries:
//
// 1. `StoreCatalog` writes the definition to the data directory and then adds the index to the map (`MapIndexes`). If
//    the store has documents, the index is not complete yet, and no plan uses it.
// 2. `IndexBuilder` takes a snapshot and copies its documents, a few at a time. `IndexKeyMaker` makes their keys for
//    all new indexes in one pass. They are sorted (`SortedKeys`) and become a tree, all without the store's lock.
// 3. Meanwhile, `MapIndex` notes what is written. The builder takes that over, a little at a time, until nothing is
//    left: the index is complete.
// 4. From then on, every change of a record passes `beginIndexChange` and `endIndexChange` (`EntryMap+Indexes`), which
//    make the keys of the old and the new document and change the tree (`IndexTree`). A document of 32 KiB or more gets
//    the overflow key first, and its own keys from the builder. A log store keeps those in a file (`KeptKeys`), so that
//    the next opening need not read the document.

import Dispatch
import Documents
import Platform

/// Builds the indexes of a store in the background, while reads and writes go on.
///
/// All indexes that wait are built at once, from one snapshot: their keys are made in one pass over its documents, which
/// are copied in small batches under the store's lock. Sorting the keys and building the trees needs no lock. Meanwhile,
/// the indexes note what changes, and take it over at the end. One thread of the process does all of this.
struct IndexBuilder {
  static let queue = DispatchQueue(label: "larder.indexes")
  /// The number of changes that are taken over under one acquisition of the lock, which takes up to 0.5 ms.
  private static let changesPerAccess = 64

  private let store: Store
  private let snapshot: Snapshot
  private let indexes: [MapIndex]
  private let maker: IndexKeyMaker
  private let keptKeys: KeptKeys?
  private var keys = IndexKeys()
  private var trees: [IndexTree]
  private var unordered: [SortedKeys]

  /// Builds the indexes that wait, on the builder's thread. From any thread.
  static func buildWaitingIndexes(of store: Store) {
    queue.async {
      while var builder = IndexBuilder(store) { builder.build() }
    }
  }

  /// Begins to build the indexes of a store that wait; nil if none does.
  private init?(_ store: Store) {
    let begun = store.accessBetweenLargeCommits { map -> (Snapshot, [MapIndex])? in
      let waiting = map.indexes?.indexes.filter(\.isWaiting) ?? []
      guard !waiting.isEmpty else { return nil }
      let snapshot = map.snapshot(now: monotonicMilliseconds(), isPinned: true)
      for index in waiting { index.beginBuild(from: snapshot.revision) }
      return (snapshot, waiting)
    }
    guard let begun else { return nil }
    self.store = store
    (snapshot, indexes) = begun
    maker = MapIndexes.maker(of: indexes)
    keptKeys = store.keptKeys
    keptKeys?.use(indexes.map(\.definition), finding: true)
    trees = indexes.map { IndexTree(fieldCount: $0.definition.fields.count) }
    unordered = indexes.map { _ in SortedKeys(commonPrefix: 0) }
  }

  private mutating func build() {
    do throws(StorageError) {
      if try makeKeys() {
        try buildTrees()
        takeOverChanges()
      }
    } catch {
      store.accessInTurn { _ in
        for index in indexes where index.isBuilt(from: snapshot.revision) { index.failBuild(error) }
      }
    }
    store.accessInTurn { $0.end(snapshot) }
    keptKeys?.finish(store)
  }

  /// Makes the keys of all documents of the snapshot.
  /// - Returns: Whether there is still an index that is built.
  private mutating func makeKeys() throws(StorageError) -> Bool {
    var batch = BuildBatch()
    var rank = 0
    while rank < snapshot.count {
      // The larger part of the work is before the trees are built.
      let progress = 0.8 * Double(rank) / Double(snapshot.count)
      let next: Int? = try store.accessInTurn { map throws(StorageError) in
        let built = indexes.filter { $0.isBuilt(from: snapshot.revision) }
        guard !map.isDropped, !built.isEmpty else { return nil }
        for index in built { index.setProgress(progress) }
        return try rank + batch.copy(from: rank, of: snapshot, map)
      }
      guard let next else { return false }
      rank = next
      for position in 0..<batch.count { try append(position, of: &batch) }
    }
    return true
  }

  private mutating func append(_ position: Int, of batch: inout BuildBatch) throws(StorageError) {
    let document = batch.document(position)
    if !batch.findKeys(of: position, in: keptKeys, &keys) {
      if batch.readValue(position, of: store) {
        batch.makeKeys(of: position, maker, keeping: keptKeys, &keys)
      } else {
        // Readers of the value get the error.
        keys.setOverflow(inIndexes: indexes.count)
      }
    }
    for number in indexes.indices { try trees[number].append(document, keys, number, to: &unordered[number]) }
  }

  private mutating func buildTrees() throws(StorageError) {
    for number in indexes.indices {
      let keys = unordered[number]
      unordered[number] = SortedKeys(commonPrefix: 0)
      try trees[number].build(keys)
      let progress = 0.8 + 0.2 * Double(number + 1) / Double(indexes.count)
      store.accessInTurn { _ in
        for index in indexes where index.isBuilt(from: snapshot.revision) { index.setProgress(progress) }
      }
    }
  }

  private mutating func takeOverChanges() {
    for (number, index) in indexes.enumerated() {
      store.accessInTurn { _ in
        if index.isBuilt(from: snapshot.revision) { index.setBase(trees[number]) }
      }
      var isDone = false
      while !isDone {
        isDone = store.accessInTurn { map in
          guard index.isBuilt(from: snapshot.revision) else { return true }
          defer { map.didChangeIndexes() }
          return index.takeOverChanges(limit: Self.changesPerAccess, number, in: map.arena.records, &keys) {
            record, keys in
            MapIndexes.makeKeys(of: record, maker, count: indexes.count, into: &keys)
          }
        }
      }
    }
  }
}

// MARK: - Large documents

extension IndexBuilder {
  /// Makes the keys of the large documents that were written to a store, on the builder's thread. From any thread, also
  /// under the store's lock.
  static func makeKeysOfLargeDocuments(of store: Store) {
    queue.async {
      while let document = store.accessInTurn({ map in map.indexes?.takeLargeDocument() }) {
        makeKeys(of: document, in: store)
      }
      store.keptKeys?.finish(store)
    }
  }

  private static func makeKeys(of large: MapIndexes.LargeDocument, in store: Store) {
    var batch = BuildBatch()
    // The snapshot keeps the record.
    let begun = store.accessBetweenLargeCommits { map -> (Snapshot, UInt32, [MapIndex])? in
      guard let indexes = map.indexes?.indexes, let handle = map.handle(of: large) else { return nil }
      batch.copy(handle, map)
      return (map.snapshot(now: 0, isPinned: true), handle, indexes)
    }
    guard let (snapshot, handle, indexes) = begun else { return }
    if batch.readValue(0, of: store) {
      let maker = MapIndexes.maker(of: indexes)
      var keys = IndexKeys()
      store.keptKeys?.use(indexes.map(\.definition), finding: false)
      batch.makeKeys(of: 0, maker, keeping: store.keptKeys, &keys)
      store.accessBetweenLargeCommits { map in
        guard map.handle(of: large) == handle, let current = map.indexes else { return }
        guard current.indexes.elementsEqual(indexes, by: ===) else { return current.postpone(large) }
        current.refine(IndexTree.Document(handle, map.record(handle)), keys, in: map.arena.records)
        map.didChangeIndexes()
      }
    }
    store.accessInTurn { $0.end(snapshot) }
  }
}

extension EntryMap {
  /// Returns the record of a large document; nil if it was replaced or removed.
  fileprivate func handle(of large: MapIndexes.LargeDocument) -> UInt32? {
    unsafe handle(of: Key(large.key.span.bytes), revision: large.revision)
  }
}
