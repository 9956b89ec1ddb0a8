import Documents
import Testing

@testable import Storage

/// What an index should have, made from all entries of a map.
struct ExpectedIndex {
  struct Entry: Equatable {
    let key: [UInt8]
    let id: [UInt8]
  }

  private(set) var entries: [Entry] = []
  private(set) var figures = IndexTree.Figures()

  /// - Parameter overflowing: The ids of documents that have the overflow key, as larger ones may.
  init(_ definition: DocumentIndex, _ documents: [EntryCopy], overflowing: Set<[UInt8]>) throws {
    let maker = try IndexKeyMaker([definition])
    var keys = IndexKeys()
    for document in documents {
      maker.makeKeys(
        of: document.entry.kind == .single ? document.entry.value.span : Span(), key: document.key.span,
        revision: document.entry.revision, into: &keys)
      if overflowing.contains(document.key), document.entry.value.count >= ExternalValues.minimumByteCount {
        keys.setOverflow(inIndexes: 1)
      }
      guard keys.count(of: 0) > 0 else { continue }
      figures.documentCount += 1
      figures.multiFields |= keys.multiFields(of: 0)
      if keys.isOverflow(of: 0) { figures.overflowCount += 1 }
      for number in 0..<keys.count(of: 0) { entries.append(Entry(key: keys.key(number, of: 0), id: document.key)) }
    }
    figures.entryCount = entries.count
    entries.sort { left, right in
      left.key == right.key
        ? left.id.lexicographicallyPrecedes(right.id) : left.key.lexicographicallyPrecedes(right.key)
    }
  }
}

extension EntryMap {
  /// Checks that every index that a snapshot sees has exactly the documents of the snapshot, with their keys.
  /// - Returns: The number of complete indexes.
  @discardableResult
  func validateIndexes(in snapshot: Snapshot, _ documents: [EntryCopy]) throws -> Int {
    var completeCount = 0
    for index in try indexes(in: snapshot) where index.planned.isComplete {
      completeCount += 1
      let overflowing = try ids(of: ranks(of: .overflow, in: index, of: snapshot), in: index, of: snapshot)
      let expected = try ExpectedIndex(index.planned.index, documents, overflowing: Set(overflowing))
      let found = try ids(of: 0..<index.planned.entryCount, in: index, of: snapshot)
      #expect(found == expected.entries.map(\.id), "\(index.planned.index)")
      #expect(index.planned.entryCount == expected.figures.entryCount)
      #expect(index.planned.multiFields == expected.figures.multiFields)
      #expect(index.planned.overflowCount == expected.figures.overflowCount)
      // Every entry is among those with its key.
      let areFound = try expected.entries.enumerated().allSatisfy { rank, entry in
        let range = KeyRange(lower: entry.key, upper: entry.key + [0])
        return try ranks(of: range, in: index, of: snapshot).contains(rank)
      }
      #expect(areFound, "\(index.planned.index)")
    }
    return completeCount
  }

  private func ids(of ranks: Range<Int>, in index: IndexView, of snapshot: Snapshot) throws -> [[UInt8]] {
    var ids: [[UInt8]] = []
    _ = try scan(ranks: ranks, of: index, reverse: false, in: snapshot, now: 0) { _, entry in
      unsafe ids.append(Array(entry.key))
      return true
    }
    return ids
  }

  /// Returns copies of all entries of a snapshot, expired or not.
  func copies(in snapshot: Snapshot) throws -> [EntryCopy] {
    var copies: [EntryCopy] = []
    _ = try scan(ranks: 0..<snapshot.count, reverse: false, in: snapshot, now: 0) { entry in
      copies.append(EntryCopy(entry))
      return true
    }
    return copies
  }
}
