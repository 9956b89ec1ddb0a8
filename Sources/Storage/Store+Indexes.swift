import Documents

extension Store {
  /// The maximum number of indexes of a store.
  package static let maxIndexCount = 64

  /// The store's indexes, sorted by name.
  package var indexReports: [IndexReport] { access { $0.indexReports } }

  /// Creates an index, unless it exists, and builds it in the background. A durable store's catalog must have recorded
  /// it before.
  /// - Throws: `storeDropped`, `indexExists` if another index has its name, or `tooManyIndexes`.
  /// - Returns: Whether the index was created.
  @discardableResult
  package func ensureIndex(_ index: DocumentIndex) throws(StorageError) -> Bool {
    let isNew = try add(index)
    if isNew { IndexBuilder.buildWaitingIndexes(of: self) }
    return isNew
  }

  /// Creates and deletes indexes so that the store has those that were recorded.
  func restoreIndexes(_ indexes: [DocumentIndex]) throws(StorageError) {
    for index in indexReports.map(\.index) where !indexes.contains(index) { try deleteIndex(named: index.name) }
    for index in indexes { _ = try add(index) }
    if !indexes.isEmpty { IndexBuilder.buildWaitingIndexes(of: self) }
  }

  private func add(_ index: DocumentIndex) throws(StorageError) -> Bool {
    try accessBetweenLargeCommits { map throws(StorageError) in
      try map.ensureIndex(index) { [weak self] in
        if let self { IndexBuilder.makeKeysOfLargeDocuments(of: self) }
      }
    }
  }

  /// Deletes an index, or cancels its build.
  /// - Throws: `unknownIndex`.
  package func deleteIndex(named name: String) throws(StorageError) {
    try accessBetweenLargeCommits { map throws(StorageError) in try map.deleteIndex(named: name) }
  }
}
