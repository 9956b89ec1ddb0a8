import Storage
import Wire

/// Transactions: what is queued is executed under one acquisition of the lock, and its changes are one commit.
extension RESPRun {
  mutating func watch(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    guard client.transaction == nil else { throw .error("ERR WATCH inside MULTI is not allowed") }
    var keys = request.words(from: 1, bytes)
    while let key = keys.next(bytes) {
      let key = bytes.extracting(key)
      let watched = RESPWatchedKey(store: store, key: key.toArray(), revision: entry(key, &map)?.revision)
      try client.watch(watched)
    }
    replies.bytes.appendRESPOK()
  }

  /// Executes what was queued, unless a command was refused or a watched key has changed. Each command has its own reply,
  /// and an error of one doesn't undo the others.
  mutating func executeTransaction(_ map: inout EntryMap, _ replies: inout ReplyBuffer) throws(RESPFailure) {
    guard let transaction = client.transaction else { throw .error("ERR EXEC without MULTI") }
    if transaction.isAborted {
      client.discardTransaction()
      throw .error("EXECABORT Transaction discarded because of previous errors.")
    }
    // A large commit may change watched keys.
    if map.isDiverted { throw .detour(.needsCommit) }
    do throws(StorageError) { try transaction.reserveRoom(&map) } catch {
      throw .detour(Detour(error, revealing: map.revisions.last))
    }
    let isUnchanged = areWatchedKeysUnchanged(&map)
    client.discardTransaction()
    guard isUnchanged else { return replies.bytes.appendRESPNullArray(version) }
    replies.bytes.appendRESP(arrayOf: transaction.count)
    beginTransaction(map.revisions)
    defer { endTransaction() }
    let bytes = unsafe transaction.requests.span.bytes
    var position = 0
    while case .request(let request) = RESPRequest.scan(bytes, at: position, maxSize: .max) {
      executeQueued(request, bytes.extracting(request.body(at: position)), &map, &replies)
      position += request.size
    }
  }

  private mutating func areWatchedKeysUnchanged(_ map: inout EntryMap) -> Bool {
    for watched in client.watchedKeys {
      guard watched.store === store else { return false }
      if unsafe entry(watched.key.span.bytes, &map)?.revision != watched.revision { return false }
    }
    return true
  }

  private mutating func executeQueued(
    _ request: RESPRequest, _ bytes: RawSpan, _ map: inout EntryMap, _ replies: inout ReplyBuffer
  ) {
    // The others were queued because they are permitted.
    guard request.command != .flushall || permitted.contains(Operation.deleteAll.rawValue) else {
      return replies.bytes.appendRESP(error: "NOPERM this client may not use '\(request.command.name)'")
    }
    if !request.hasValidCount, RESPCodec.appendHelp(request, bytes, into: &replies) { return }
    let mark = replies.bytes.count
    do throws(RESPFailure) {
      if request.store == 0, request.command != .flushall {
        try RESPCodec.executeQueued(request, bytes, client, into: &replies)
      } else {
        try execute(request, bytes, &map, into: &replies)
      }
    } catch {
      replies.truncate(to: mark)
      replies.bytes.appendRESP(error: RESPCodec.text(of: error))
    }
  }
}
