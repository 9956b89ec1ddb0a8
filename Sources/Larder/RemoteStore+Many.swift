import Wire

extension RemoteStore {
  /// The entries of several keys, as they were at one moment.
  /// - Returns: for each key, in order, its entry or nil.
  /// - Throws: `illegalArgument` for more keys than the server takes in one call.
  public func getMany(_ keys: [String]) async throws(LarderError) -> [Entry?] {
    var entries: [Entry?] = []
    entries.reserveCapacity(keys.count)
    try await readAnswer(GetManyRequest(keys: ListedKeys(keys: keys))) { (body, record) throws(LarderError) in
      guard entries.count < keys.count else { throw .malformedReply }
      if record.kind == nil {
        entries.append(nil)
      } else if let entry = Entry(record, in: body, key: keys[entries.count]) {
        entries.append(entry)
      } else {
        throw .malformedReply
      }
    }
    guard entries.count == keys.count else { throw .malformedReply }
    return entries
  }

  /// Writes several entries, all or none of them.
  /// - Returns: the revision, which is the same for all; 0 for no writes.
  /// - Throws: `conditionFailed` when one of the conditions does not hold; nothing is written then.
  @discardableResult
  public func putMany(_ writes: [Write]) async throws(LarderError) -> UInt64 {
    var puts: [PutRequest] = []
    puts.reserveCapacity(writes.count)
    for write in writes { puts.append(try PutRequest(write)) }
    return try await call(PutManyRequest(puts: puts)).number
  }

  /// Deletes the entries of several keys, in one step.
  /// - Returns: how many there were.
  @discardableResult
  public func deleteMany(_ keys: [String]) async throws(LarderError) -> UInt64 {
    try await call(DeleteManyRequest(keys: ListedKeys(keys: keys))).number
  }

  /// Reads a whole answer, record by record. The call's deadline covers all of it.
  func readAnswer<Q: Request>(
    _ request: Q, _ each: (RawSpan, EntryRecord) throws(LarderError) -> Void
  ) async throws(LarderError) {
    let time = time
    let connection = core.connection
    let reply = try await connection.call(request, store: reference, time: time)
    guard case .body(var body, let rest) = reply else { preconditionFailure("an answer has frames") }
    let reader = rest.map { AnswerReader(core, connection, $0) }
    var hasMore = reader != nil
    while true {
      try Self.readRecords(body, each)
      guard hasMore, let reader else { return }
      (body, hasMore) = try await reader.next(deadline: time.deadline)
    }
  }

  private static func readRecords(
    _ body: [UInt8], _ each: (RawSpan, EntryRecord) throws(LarderError) -> Void
  ) throws(LarderError) {
    let bytes = unsafe body.span.bytes
    var place = 0
    while place < bytes.byteCount {
      guard let record = EntryRecord(bytes, at: place) else { throw .malformedReply }
      try each(bytes, record)
      place = record.end
    }
  }
}
