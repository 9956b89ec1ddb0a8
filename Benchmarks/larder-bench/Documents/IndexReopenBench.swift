import Dispatch
import Documents
import Storage

/// Measures how long a log store with indexes takes to open, and until its indexes are complete.
struct IndexReopenBench {
  private let plan: DocumentsPlan
  private let runner: BenchRunner
  /// The number of documents that are put under one acquisition of the store's lock.
  private static let batchCount = 256

  /// The times since the start of an opening, in seconds.
  private struct Opening {
    let end: Double
    let firstGet: Double
    let complete: Double
  }

  init(_ plan: DocumentsPlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
  }

  func run(_ documents: [NumberedDocument]) throws -> [MeasuredFigure] {
    let data = try DataDirectory.open(runner.disk.makePath("data"))
    let name = try StoreName("documents")
    runner.show("writing a log of \(documents.count) documents")
    try fill(data, name, documents)
    let indexes = try IndexWork.indexes.map { try DocumentIndex($0) }
    var (without, with): ([Opening], [Opening]) = ([], [])
    for round in 0..<plan.longRepeats {
      runner.show("open \(documents.count) documents: round \(round + 1) of \(plan.longRepeats)")
      try data.setIndexes([], of: name)
      without.append(try open(data, name, documents))
      try data.setIndexes(indexes, of: name)
      with.append(try open(data, name, documents))
    }
    let bare = IndexWork.open(indexCount: 0, documents: documents.count)
    let indexed = IndexWork.open(indexCount: indexes.count, documents: documents.count)
    return [
      bare.figure(.firstGet, without.map(\.firstGet)), indexed.figure(.firstGet, with.map(\.firstGet)),
      indexed.figure(.complete, with.map(\.complete)),
      indexed.figure(.completeAfterOpening, with.map { $0.complete - $0.end }),
    ]
  }

  private func fill(_ data: DataDirectory, _ name: StoreName, _ documents: [NumberedDocument]) throws {
    let catalog = StoreCatalog(data: data)
    defer { catalog.close() }
    let store = try catalog.create(name, StoreSpecification(.log, durability: Durability("none")))
    var next = 0
    while next < documents.count {
      let batch = documents[next..<min(next + Self.batchCount, documents.count)]
      let spaceChangeCount = store.commitWriter?.spaceChangeCount ?? 0
      do throws(StorageError) {
        try store.access { map throws(StorageError) in
          for document in batch {
            let revision = map.revisions.last + 1
            try unsafe map.put(document.key.span.bytes, document.text.span.bytes, revision: revision)
          }
        }
        next = batch.endIndex
      } catch {
        guard error == .diskTooSlow else { throw error }
        // What is there already is put again.
        Self.waitForSpace(in: store, since: spaceChangeCount)
      }
      store.commitWriter?.wake()
    }
  }

  private static func waitForSpace(in store: Store, since count: UInt64) {
    let hasChanged = DispatchSemaphore(value: 0)
    store.commitWriter?.waitForSpace(since: count) { hasChanged.signal() }
    hasChanged.wait()
  }

  private func open(_ data: DataDirectory, _ name: StoreName, _ documents: [NumberedDocument]) throws -> Opening {
    let document = documents[documents.count / 2]
    let start = Clocks.now()
    func elapsed() -> Double { Double(Clocks.now() - start) / 1e9 }
    let catalog = StoreCatalog(data: data)
    defer { catalog.close() }
    try catalog.openAll { _, _ in }
    let end = elapsed()
    let store = try catalog.open(name)
    let size = store.access { map in unsafe map.get(document.key.span.bytes, now: 0)?.valueByteCount }
    let firstGet = elapsed()
    try StoreTable(store).waitForIndexes()
    let complete = elapsed()
    guard size == document.text.count, store.indexReports.allSatisfy({ $0.documentCount == documents.count }) else {
      throw BenchError("documents are missing after the store was opened")
    }
    return Opening(end: end, firstGet: firstGet, complete: complete)
  }
}
