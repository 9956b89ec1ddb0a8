import Documents
import Glibc
import Storage

/// A store of Larder in this process, as a table of documents.
final class StoreTable: DocumentTable {
  let contender = Contender.larder
  private let store: Store

  init() throws { store = Store(name: try StoreName("documents"), engine: .memory) }

  init(_ store: Store) { self.store = store }

  /// Puts each document under an acquisition of the store's lock of its own.
  func put(_ documents: [NumberedDocument]) throws {
    for document in documents {
      try store.access { map throws(StorageError) in
        let revision = map.revisions.last + 1
        try unsafe map.put(document.key.span.bytes, document.text.span.bytes, revision: revision)
      }
    }
  }

  func buildIndex(_ fields: [String]) throws {
    try store.ensureIndex(DocumentIndex(fields))
    try waitForIndexes()
  }

  /// Waits until all indexes are complete.
  func waitForIndexes() throws {
    while try !areIndexesComplete {
      // Others may need this processor.
      let next = Clocks.now() + 20_000
      while Clocks.now() < next { sched_yield() }
    }
  }

  private var areIndexesComplete: Bool {
    get throws {
      try store.indexReports.allSatisfy { report in
        switch report.state {
        case .complete: true
        case .building: false
        case .failed(let error): throw error
        }
      }
    }
  }

  func deleteIndex(_ fields: [String]) throws { try store.deleteIndex(named: DocumentIndex(fields).name) }

  func report(ofIndex fields: [String]) throws -> IndexReport {
    let name = try DocumentIndex(fields).name
    guard let report = store.indexReports.first(where: { $0.index.name == name }) else {
      throw BenchError("there is no index \(name)")
    }
    return report
  }

  func page(ofIndex fields: [String], from offset: Int, count: Int) throws -> [String] {
    let report = try report(ofIndex: fields)
    let ranks = offset..<min(offset + count, report.entryCount)
    return try store.access { map throws(StorageError) in
      let snapshot = map.snapshot(now: 0)
      defer { map.end(snapshot) }
      let indexes = try map.indexes(in: snapshot)
      guard let index = indexes.first(where: { $0.planned.index == report.index }) else { return [] }
      var texts: [String] = []
      _ = try map.scan(ranks: ranks, of: index, reverse: false, in: snapshot, now: 0) { _, entry in
        if let value = unsafe entry.value { texts.append(unsafe String(decoding: value, as: UTF8.self)) }
        return true
      }
      return texts
    }
  }
}
