import Documents

/// An index of a map: its definition, its entries, and whether those are complete.
///
/// While it is built, its own tree has the documents that were written since the build began, and another one has those
/// before; see `IndexBuilder`. Used under its store's lock.
final class MapIndex: @unchecked Sendable {
  /// A build in progress.
  private final class Build {
    /// The revision of the snapshot that is built from. It sees no newer documents.
    let revision: UInt64
    /// The handles of documents that the snapshot sees, and that are gone.
    var removed: [UInt32] = []
    /// The tree of the snapshot's documents, once it is built.
    var base: IndexTree?
    /// Whether the base has no document that is gone, so that new documents go there, too.
    var takesNewDocuments = false
    var progress: Double = 0

    init(revision: UInt64) { self.revision = revision }
  }

  private enum Phase {
    case complete
    /// Until a builder begins with it.
    case waiting
    case building(Build)
    /// The system refused memory.
    case failed(StorageError)
  }

  let definition: DocumentIndex
  private var tree: IndexTree
  private var phase: Phase
  /// Trees that only views see.
  private var formerTrees: [IndexTree] = []

  /// Creates an index without documents.
  /// - Parameter isComplete: Whether the map has no documents either.
  init(_ definition: DocumentIndex, isComplete: Bool) {
    self.definition = definition
    phase = isComplete ? .complete : .waiting
    tree = IndexTree(fieldCount: definition.fields.count)
  }

  var state: IndexState {
    switch phase {
    case .complete: .complete
    case .waiting: .building(0)
    case .building(let build): .building(build.progress)
    case .failed(let error): .failed(error)
    }
  }

  var isWaiting: Bool { if case .waiting = phase { true } else { false } }

  var figures: IndexTree.Figures { tree.figures }
  var memoryBytes: Int { allTrees.reduce(0) { $0 + $1.memoryBytes } }
  var pagedBytes: Int { allTrees.reduce(0) { $0 + $1.pagedBytes } }
  var visibleBytes: Int { allTrees.reduce(0) { $0 + $1.visibleBytes } }
  var limitedBytes: Int { tree.limitedBytes + (build?.base?.limitedBytes ?? 0) }
  private var allTrees: [IndexTree] { [tree] + (build?.base.map { [$0] } ?? []) + formerTrees }
  var hasViews: Bool { allTrees.contains(where: \.hasViews) }

  // MARK: Documents

  /// Notes that a document was added.
  /// - Parameter number: The number of this index among those of the keys.
  func insert(_ document: IndexTree.Document, _ keys: borrowing IndexKeys, _ number: Int, in records: Records) {
    let target: IndexTree
    switch phase {
    case .complete: target = tree
    case .building(let build): target = build.takesNewDocuments ? build.base ?? tree : tree
    case .waiting, .failed: return
    }
    do throws(StorageError) { try target.insert(document, keys, number, in: records) } catch { fail(error) }
  }

  /// Notes that a document is about to go.
  func remove(_ document: IndexTree.Document, _ keys: borrowing IndexKeys, _ number: Int, in records: Records) {
    var source = tree
    switch phase {
    case .complete: break
    case .building(let build):
      if let base = build.base, build.takesNewDocuments {
        if !tree.contains(document, keys, number, in: records) { source = base }
      } else if document.revision <= build.revision {
        build.removed.append(document.handle)
        return
      }
    case .waiting, .failed: return
    }
    do throws(StorageError) { try source.remove(document, keys, number, in: records) } catch { fail(error) }
  }

  /// Notes that another record took the place of a document's, or that its value changed in place.
  func replace(
    _ old: IndexTree.Document, _ oldKeys: borrowing IndexKeys, with new: IndexTree.Document,
    _ newKeys: borrowing IndexKeys, _ number: Int, in records: Records
  ) {
    guard state == .complete, !old.isExternal, !new.isExternal, newKeys.isSame(number, as: oldKeys) else {
      remove(old, oldKeys, number, in: records)
      insert(new, newKeys, number, in: records)
      return
    }
    guard old.handle != new.handle else { return }
    do throws(StorageError) { try tree.move(old, to: new, newKeys, number, in: records) } catch { fail(error) }
  }

  /// Replaces the overflow key of a document with its keys, which have been made since.
  func refine(_ document: IndexTree.Document, _ keys: borrowing IndexKeys, _ number: Int, in records: Records) {
    // A build makes the keys of its snapshot's documents itself.
    if let build, document.revision <= build.revision { return }
    remove(document, keys, number, in: records)
    insert(document, keys, number, in: records)
  }

  /// Forgets all documents. The index is then complete, because there are none.
  func removeAll() { reset(to: .complete) }

  /// Gives the index up until it is built again.
  private func fail(_ error: StorageError) { reset(to: .failed(error)) }

  private func reset(to phase: Phase) {
    discardTree()
    if let base = build?.base { DiscardedContents.free(base) }
    tree = IndexTree(fieldCount: definition.fields.count)
    self.phase = phase
  }

  /// Frees the documents, because the index is gone.
  func discard() {
    reset(to: .complete)
    for former in formerTrees { DiscardedContents.free(former) }
    formerTrees = []
  }

  private func discardTree() {
    if tree.hasViews { formerTrees.append(tree) } else { DiscardedContents.free(tree) }
  }

  /// The tree of an index that is complete and has one key for each document; nil otherwise.
  var treeOfSingleKeys: IndexTree? {
    if case .complete = phase, tree.hasOneKeyEach { tree } else { nil }
  }

  // MARK: Views

  /// Begins a view for a snapshot, if the index is complete.
  func beginView(epoch: UInt64, revision: UInt64) {
    if state == .complete { tree.beginView(epoch: epoch, revision: revision) }
  }

  func endView(epoch: UInt64) {
    tree.endView(epoch: epoch)
    for former in formerTrees { former.endView(epoch: epoch) }
    formerTrees.removeAll { former in
      if former.hasViews { return false }
      DiscardedContents.free(former)
      return true
    }
  }

  /// Whether anything is still to be reclaimed of views that have ended.
  var hasEndedViews: Bool { allTrees.contains(where: \.hasEndedViews) }

  /// Frees entries and nodes that were kept for views that have ended.
  /// - Parameter limit: The maximum number of entries and nodes.
  /// - Returns: How many there were.
  func reclaim(limit: Int) -> Int {
    allTrees.reduce(0) { $0 + $1.reclaim(limit: limit - $0) }
  }

  /// Returns what a living snapshot sees of the index.
  func view(epoch: UInt64) -> IndexView {
    for tree in [tree] + formerTrees {
      if let view = tree.view(epoch: epoch) { return IndexView(definition, tree, view) }
    }
    return IndexView(definition, nil, nil)
  }

  // MARK: Building

  private var build: Build? { if case .building(let build) = phase { build } else { nil } }

  /// Begins to build the index from a snapshot of this revision.
  func beginBuild(from revision: UInt64) { reset(to: .building(Build(revision: revision))) }

  /// Whether the index is being built from a snapshot of this revision.
  func isBuilt(from revision: UInt64) -> Bool { build?.revision == revision }

  /// - Parameter progress: The fraction of the build that is done.
  func setProgress(_ progress: Double) { build?.progress = progress }

  /// Sets the tree of all documents of the snapshot.
  func setBase(_ base: IndexTree) { build?.base = base }

  func failBuild(_ error: StorageError) { fail(error) }

  /// Takes over some of the changes since the snapshot into the tree that was built: first the removals, then the
  /// additions. Meanwhile, others may come.
  /// - Parameters:
  ///   - limit: The maximum number of changes.
  ///   - makeKeys: Makes the keys of a document whose memory is still there.
  /// - Returns: Whether there is nothing left. The index is then complete.
  func takeOverChanges(
    limit: Int, _ number: Int, in records: Records, _ keys: inout IndexKeys,
    makeKeys: (Record, inout IndexKeys) -> Void
  ) -> Bool {
    guard let build, let base = build.base else { return true }
    do throws(StorageError) {
      for _ in 0..<limit {
        var handle = build.removed.popLast() ?? 0
        let isRemoved = handle != 0
        if !isRemoved {
          build.takesNewDocuments = true
          handle = tree.anyDocument(in: records)
          guard handle != 0 else {
            discardTree()
            (tree, phase) = (base, .complete)
            return true
          }
        }
        let record = records.record(handle)
        let document = IndexTree.Document(handle, record)
        makeKeys(record, &keys)
        if isRemoved {
          try base.remove(document, keys, number, in: records)
        } else {
          try tree.remove(document, keys, number, in: records)
          try base.insert(document, keys, number, in: records)
        }
      }
    } catch {
      fail(error)
      return true
    }
    return false
  }
}
