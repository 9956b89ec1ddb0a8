import Documents
import FoundationEssentials
import Platform

/// Reads and writes of a store that take effect together: what `RemoteStore.perform` passes to its closure.
///
/// A read notes the revision of every entry that it returns, and every key that it finds absent. A write is kept until
/// the closure returns. Then one request checks what was read and writes everything. The context can be used by several
/// tasks at a time, but not after the closure has returned.
///
/// Reads throw the errors of `RemoteStore`. If two reads return different revisions of an entry, the second one throws
/// the error of a conflict right away, and so does the end of the closure if it returns nevertheless.
public final class TransactionContext: Sendable {
  private let store: RemoteStore
  private let state = Lock(TransactionState())

  init(_ store: RemoteStore) {
    self.store = store
  }

  // MARK: Reading by key

  /// Returns the value of a key, or nil if there is none. Sees the context's own writes.
  public func get(_ key: String) async throws(LarderError) -> EntryValue? {
    try await read(key).value
  }

  /// Returns the document of a key, or nil if there is none. One of the context's own writes has no revision yet.
  func document(_ key: String) async throws(LarderError) -> Document? {
    let (value, revision) = try await read(key)
    return value?.bytes.map { Document($0, id: key, revision: revision) }
  }

  private func read(_ key: String) async throws(LarderError) -> (value: EntryValue?, revision: UInt64?) {
    if let write = pendingWrite(of: key) { return (write.value, nil) }
    let entry = try await store.get(key)
    try note([(key, entry?.revision ?? 0)])
    return (entry?.value, entry?.revision)
  }

  /// Returns the value of a key, converted from its bytes, or nil if there is none. Bytes, data and strings are kept as
  /// they are, any other type as JSON. Sees the context's own writes.
  /// - Throws: Also what the decoder throws; `dataSerialization` if the value is a list.
  public func get<T: Codable & Sendable>(_ key: String, as type: T.Type) async throws -> T? {
    try await get(key).map { try Self.decode($0, key) }
  }

  /// Returns the values of several keys, in their order, with nil for those that have none. What isn't one of the
  /// context's own writes is read at one point in time.
  /// - Throws: `illegalArgument` for more keys than the server takes in one call.
  public func getAll(_ keys: [String]) async throws(LarderError) -> [EntryValue?] {
    let pending = keys.map { pendingWrite(of: $0) }
    let missing = zip(keys, pending).filter { $1 == nil }.map(\.0)
    var entries: ArraySlice<Entry?> = []
    if !missing.isEmpty {
      entries = try await store.getMany(missing)[...]
      try note(zip(missing, entries).map { ($0, $1?.revision ?? 0) })
    }
    return pending.map { write in if let write { write.value } else { entries.removeFirst()?.value } }
  }

  /// Returns the values of several keys as `getAll(_:)` does, converted as `get(_:as:)` does.
  public func getAll<T: Codable & Sendable>(_ keys: [String], as type: T.Type) async throws -> [T?] {
    try zip(keys, await getAll(keys)).map { key, value in try value.map { try Self.decode($0, key) } }
  }

  // MARK: Finding

  /// Returns the documents that a query finds, as the store was at one point in time, and with the context's own
  /// writes, which have no revision yet.
  ///
  /// Each of the documents is noted. What does not match is not: another client's write by which a document begins to
  /// match isn't a conflict.
  /// - Throws: Also `illegalArgument` for a bookmark after a write of the context.
  public func find(_ query: DocumentQuery) async throws(LarderError) -> [Document] {
    let writes = state.withLock { state in
      state.requireOpen()
      return state.writes
    }
    // A negative number is an error of the request.
    guard !writes.isEmpty, query.skip >= 0, query.limit ?? 0 >= 0 else { return try await storedDocuments(query) }
    guard query.bookmark == nil else {
      throw LarderError(
        .illegalArgument, outcome: .rejected, "a transaction can't use a bookmark after it has written")
    }
    // Any of them may have been written since, so that others are found in its place.
    var storedQuery = query
    (storedQuery.skip, storedQuery.fields) = (0, [])
    storedQuery.limit = query.limit.map { min($0, .max / 4) + min(query.skip, .max / 4) + writes.count }
    let stored = try await storedDocuments(storedQuery).filter { document in writes[document.id ?? ""] == nil }
    let written = writes.compactMap { key, write in write.value?.bytes.map { Document($0, id: key) } }
    do throws(SelectorError) { return try (stored + written).find(query).documents } catch {
      throw LarderError(.illegalArgument, outcome: .rejected, "\(error)")
    }
  }

  /// Returns the documents that match a selector, in the order of their keys' bytes; see `find(_:)` for a query.
  public func find(_ selector: Selector) async throws(LarderError) -> [Document] {
    try await find(DocumentQuery(selector))
  }

  /// Returns the documents that match a selector as values of a type, which sees the members of each document, `_id`
  /// and `_rev`; see `find(_:)` for a query.
  /// - Throws: Also what the decoder throws.
  public func find<T: Decodable>(_ selector: Selector, as type: T.Type) async throws -> [T] {
    let decoder = JSONDecoder()
    return try await find(selector).map { try decoder.decode(T.self, from: Data($0.json())) }
  }

  /// Returns the documents that a query finds in the store, and notes them.
  private func storedDocuments(_ query: DocumentQuery) async throws(LarderError) -> [Document] {
    let documents = try await store.find(query).result().documents
    try note(documents.compactMap { document in document.id.map { ($0, document.revision ?? 0) } })
    return documents
  }

  // MARK: Writing

  /// Writes an entry.
  /// - Parameters:
  ///   - expiresIn: The time until the entry expires, from the end of the closure on, to the millisecond and at least
  ///     1 ms; nil for an entry that does not expire.
  public func put(_ key: String, _ value: EntryValue, expiresIn: Duration? = nil) {
    write(key, .put(Write(key, value, expiresIn: expiresIn)))
  }

  /// Writes a value, converted to bytes: bytes, data and strings as they are, any other type as JSON.
  /// - Throws: What the encoder throws.
  public func put<T: Codable & Sendable>(_ key: String, _ value: T, expiresIn: Duration? = nil) throws {
    put(key, .single(try defaultCodec(of: T.self).encode(value)), expiresIn: expiresIn)
  }

  /// Writes an entry for a key that has none. Reads the key, unless it was read before.
  /// - Throws: `conditionFailed` if the key has an entry, which isn't a conflict.
  public func insert(_ key: String, _ value: EntryValue, expiresIn: Duration? = nil) async throws(LarderError) {
    guard try await !contains(key) else {
      throw LarderError(.conditionFailed, outcome: .rejected, "the key \(key.debugDescription) has an entry already")
    }
    put(key, value, expiresIn: expiresIn)
  }

  /// Writes a value, converted as in `put`, for a key that has none.
  /// - Throws: `conditionFailed` if the key has an entry, which isn't a conflict; and what the encoder throws.
  public func insert<T: Codable & Sendable>(_ key: String, _ value: T, expiresIn: Duration? = nil) async throws {
    try await insert(key, .single(try defaultCodec(of: T.self).encode(value)), expiresIn: expiresIn)
  }

  /// Deletes the entry of a key, if there is one.
  public func delete(_ key: String) { write(key, .delete) }

  /// Returns whether a key has an entry. Asks the server only if that isn't known.
  private func contains(_ key: String) async throws(LarderError) -> Bool {
    if let write = pendingWrite(of: key) { return write.value != nil }
    if let revision = state.withLock({ $0.revisions[key] }) { return revision != 0 }
    return try await get(key) != nil
  }

  // MARK: Fetched documents

  /// Notes the revision of a document that was fetched, maybe before this transaction, and that is about to be written.
  /// - Throws: The error of a conflict if the entry had another revision when it was read, and `illegalArgument` if the
  ///   revision isn't known because another context has written the document.
  func noteFetched(_ document: Document, _ key: String) throws(LarderError) {
    if let revision = document.revision { return try note([(key, revision)]) }
    guard pendingWrite(of: key) == nil else { return }
    throw LarderError(
      .illegalArgument, outcome: .rejected,
      "another transaction has written the document \(key.debugDescription); fetch it again")
  }

  /// Returns the document that the context has written for a key; nil if it has written nothing for it.
  /// - Throws: `notFound` if the context has deleted it, or replaced it with a list.
  func pendingDocument(_ key: String) throws(LarderError) -> Document? {
    guard let write = pendingWrite(of: key) else { return nil }
    guard let bytes = write.value?.bytes else {
      throw LarderError(
        .notFound, outcome: .rejected, "the transaction has deleted or replaced the document \(key.debugDescription)")
    }
    return Document(bytes, id: key)
  }

  // MARK: State

  /// What a pending write makes of its key: the value, or nil.
  private struct PendingValue {
    let value: EntryValue?
  }

  private func pendingWrite(of key: String) -> PendingValue? {
    state.withLock { state in
      state.requireOpen()
      return state.writes[key].map { PendingValue(value: $0.value) }
    }
  }

  private func write(_ key: String, _ write: TransactionState.PendingWrite) {
    state.withLock { state in
      state.requireOpen()
      if state.writes.updateValue(write, forKey: key) == nil { state.writtenKeys.append(key) }
    }
  }

  /// Notes what one request has read.
  /// - Throws: The error of a conflict if an entry had another revision when it was read before.
  private func note(_ entries: [(key: String, revision: UInt64)]) throws(LarderError) {
    let changedKey: String? = state.withLock { state in
      state.requireOpen()
      state.readCount += 1
      var changedKey: String?
      for (key, revision) in entries {
        guard let earlier = state.revisions[key] else {
          state.revisions[key] = revision
          state.readKeys.append(key)
          continue
        }
        if earlier != revision { changedKey = key }
      }
      if changedKey != nil { state.hasConflict = true }
      return changedKey
    }
    guard let changedKey else { return }
    throw Self.conflict("the entry of \(changedKey.debugDescription) was written between two reads")
  }

  private static func decode<T: Codable & Sendable>(_ value: EntryValue, _ key: String) throws -> T {
    guard let bytes = value.bytes else {
      throw LarderError(
        .dataSerialization, outcome: .rejected, "the value of \(key.debugDescription) is a list, not a single value")
    }
    return try defaultCodec(of: T.self).decode(bytes)
  }

  // MARK: Ending

  /// Whether others have written what was read.
  var hasConflict: Bool { state.withLock { $0.hasConflict } }

  /// Ends the context without writing anything.
  func cancel() { state.withLock { $0.hasEnded = true } }

  /// Ends the context: checks what was read, and writes what was written.
  func commit() async throws(LarderError) {
    let (hasConflict, batch) = state.withLock { state in
      state.requireOpen()
      state.hasEnded = true
      return (state.hasConflict, state.batch)
    }
    if hasConflict { throw Self.conflict("an entry was written between two reads") }
    guard let batch else { return }
    do throws(LarderError) { try await store.apply(batch) } catch {
      guard error.kind == .conditionFailed else { throw error }
      state.withLock { $0.hasConflict = true }
      throw Self.conflict(error.message)
    }
  }

  /// The error of a conflict. It says that the same call may succeed later.
  private static func conflict(_ message: String) -> LarderError {
    LarderError(
      .conditionFailed, outcome: .notExecuted, "entries that the transaction has read were changed: \(message)")
  }
}

/// What the closure of a transaction has read and written so far. Guarded by the lock of its context.
private struct TransactionState {
  enum PendingWrite {
    case put(Write)
    case delete

    /// What the key has then; nil for nothing.
    var value: EntryValue? { if case .put(let write) = self { write.value } else { nil } }
  }

  /// The revisions of the entries that were read, 0 for absent ones, and their keys in the order of their first reads.
  var revisions: [String: UInt64] = [:]
  var readKeys: [String] = []
  /// The writes, and their keys in the order of their first writes.
  var writes: [String: PendingWrite] = [:]
  var writtenKeys: [String] = []
  /// The number of requests that have read.
  var readCount = 0
  var hasConflict = false
  var hasEnded = false

  func requireOpen() {
    precondition(!hasEnded, "The context of a transaction is used after its closure has returned.")
  }

  /// The request that ends the transaction, or nil if none is needed: what a single request reads is always consistent.
  var batch: WriteBatch? {
    if writes.isEmpty, readCount <= 1 { return nil }
    var batch = WriteBatch()
    for key in readKeys {
      // A write has the condition itself.
      guard writes[key] == nil, let revision = revisions[key] else { continue }
      if revision == 0 { batch.checkAbsent(key) } else { batch.check(key, hasRevision: revision) }
    }
    for key in writtenKeys {
      guard let write = writes[key] else { continue }
      switch (write, revisions[key]) {
      case (.put(let write), nil): batch.put(write)
      case (.put(var write), let revision?):
        write.condition = revision == 0 ? .absent : .revision(revision)
        batch.put(write)
      case (.delete, nil): batch.delete(key)
      case (.delete, 0?): batch.checkAbsent(key)
      case (.delete, let revision?): batch.delete(key, ifRevision: revision)
      }
    }
    return batch.isEmpty ? nil : batch
  }
}
