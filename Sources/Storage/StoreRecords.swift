import Documents

/// Where an engine keeps what belongs to a store besides its entries, if the data directory doesn't.
package protocol StoreRecords: Sendable {
  /// Returns what was last recorded; empty if nothing was.
  func bytes(of item: StoreRecordItem) throws(EngineError) -> [UInt8]

  /// Records something. It survives a crash when this returns.
  func record(_ bytes: [UInt8], as item: StoreRecordItem) throws(EngineError)
}

/// What an engine keeps of a store besides its entries.
package enum StoreRecordItem: String, CaseIterable, Sendable {
  /// The definitions of the store's indexes.
  case indexes
  /// What is known of the store's history.
  case history
}

/// Where a store's history is recorded.
enum HistoryRecord: Sendable {
  case file(StoreHistoryFile)
  case engine(any StoreRecords)

  /// Returns what is known of the history; nil if nothing is.
  func read() throws -> StoreHistory? {
    switch self {
    case .file(let file): return try file.read()
    case .engine(let records):
      let bytes = try records.bytes(of: .history)
      // The server that opens a new store records its history before any client can write.
      return bytes.isEmpty ? .new : StoreHistory(bytes)
    }
  }

  /// Records a history. It survives a crash when this returns.
  func write(_ history: StoreHistory) throws {
    switch self {
    case .file(let file): try file.write(history)
    case .engine(let records): try records.record(history.bytes, as: .history)
    }
  }
}

extension StoreRecords {
  /// Returns the definitions of the store's indexes.
  func indexes() throws -> [DocumentIndex] {
    let bytes = try bytes(of: .indexes)
    return try IndexDefinitions.indexes(in: bytes[...])
  }
}
