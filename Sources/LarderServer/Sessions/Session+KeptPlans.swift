import Documents
import Platform
import Storage
import Wire

/// Finds that are answered at once, under the lock of their store, by a plan that is kept for their shape.
///
/// Nothing is parsed, planned or evaluated, and there is neither a snapshot nor a job: the plan says which keys of an index
/// stand for the documents of the result.
extension Session {
  /// The maximum number of documents in such a reply, and its maximum size, in bytes.
  private static var maxCount: Int { 256 }
  private static var maxByteCount: Int { 64 << 10 }
  /// The maximum size of the documents whose fields are in such a reply, in bytes: the store is locked meanwhile.
  private static var maxReadByteCount: Int { 128 << 10 }

  /// Replies to a find if a plan for its shape is kept and the reply is small. No store is locked.
  /// - Returns: nil if the find must be executed in another way; nothing has been appended then.
  func replyByKeptPlan(
    _ find: FindRequest, _ request: C.Request, _ body: RawSpan, of connection: inout Connection, _ store: Store,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> RequestEnd? {
    guard executor.readShape(of: find, body), connection.credit > 0 else { return nil }
    let startTime = monotonicNanoseconds()
    let start = replies.count
    let part = C.beginPart(of: request.tag, isFirst: true, through: nil, executor.limits, into: &replies)
    store.lock()
    defer { store.unlock() }
    guard
      let result = unsafe appendByKeptPlan(
        find, body, since: startTime, of: &store.map, to: part, on: &executor, into: &replies),
      C.append(.result(result), to: part, into: &replies),
      replies.bytes.count - part.start <= connection.credit
    else {
      replies.truncate(to: part.start)
      return nil
    }
    C.end(part, through: nil, isLast: true, into: &replies)
    executor.recordIndexedFind(result)
    if let commitWriter = store.commitWriter {
      replies.require(result.revision, commitWriter, of: request.tag, from: start, reveals: true)
    }
    return .done
  }

  /// Appends the documents of a find to a part.
  /// - Returns: What follows them; nil if the find must be executed in another way.
  private func appendByKeptPlan(
    _ find: FindRequest, _ body: RawSpan, since startTime: UInt64, of map: inout EntryMap, to part: StreamPart,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> FindResult? {
    let now = executor.now
    guard !map.isDropped, !map.isDiverted, !executor.server.memory.isExhausted, !map.expireBriefly(now: now) else {
      return nil
    }
    if let id = executor.id(of: find) {
      return appendDocument(
        withID: body.extracting(id), find, since: startTime, of: &map, to: part, on: &executor, into: &replies)
    }
    guard let (plan, documents) = executor.keptPlan(for: find, body, of: &map) else { return nil }
    var (foundCount, last, text) = (documents.ranks.count, StoredEntry?.none, "")
    var examinedCount = 0
    if !find.isCountOnly {
      let restCount = max(0, foundCount - Int(clamping: find.skip))
      foundCount = min(restCount, find.limit.map { Int($0) } ?? restCount)
      guard foundCount <= min(Self.maxCount, executor.limits.findDocuments) else { return nil }
      let page = Self.page(documents.ranks, restCount, foundCount, isReversed: plan.isReversed)
      var (isComplete, readByteCount, objects) = (true, 0, [UInt32]())
      map.visit(documents, page, reverse: plan.isReversed) { handle, view in
        readByteCount += plan.projection == nil ? 0 : view.valueByteCount
        guard let value = unsafe view.value, !view.isExternal, readByteCount <= Self.maxReadByteCount else {
          isComplete = false
          return false
        }
        var entry = unsafe StoredEntry(view, EntryHead(handle, view), value: value)
        if plan.projection != nil, !entry.isTrusted, executor.isObject(entry) {
          entry.isTrusted = true
          objects.append(handle)
        }
        last = entry
        isComplete =
          if let projection = plan.projection {
            C.append(.fields(of: entry, projection, now: now), to: part, into: &replies)
          } else {
            C.append(view, hasKey: true, hasValue: true, to: part, now: now, into: &replies)
          }
        return isComplete && replies.bytes.count - part.start <= Self.maxByteCount
      }
      for handle in objects { map.noteObject(at: handle) }
      guard isComplete, replies.bytes.count - part.start <= Self.maxByteCount else { return nil }
      examinedCount = min(restCount, foundCount + 1)
      if restCount > foundCount, let last {
        guard let bookmark = plan.bookmark(after: last, Span(_bytes: body.extracting(find.selector))) else {
          return nil
        }
        text = bookmark
      }
    }
    return FindResult(
      revision: map.revisions.last, examinedDocuments: UInt64(examinedCount), examinedKeys: UInt64(examinedCount),
      found: UInt64(foundCount), nanoseconds: monotonicNanoseconds() - startTime, text: text)
  }

  /// Appends the document with an id, if there is one.
  /// - Returns: What follows it; nil if the entry isn't known to be a document.
  private func appendDocument(
    withID id: RawSpan, _ find: FindRequest, since startTime: UInt64, of map: inout EntryMap, to part: StreamPart,
    on executor: inout Executor, into replies: inout ReplyBuffer
  ) -> FindResult? {
    guard find.skip == 0 else { return nil }
    var count: UInt64 = 0
    if !id.isEmpty, let handle = map.handle(of: id, now: executor.now) {
      let view = map.entry(at: handle)
      guard view.kind == .single, !view.isExternal, Self.isObject(view, at: handle, of: map, on: &executor),
        find.isCountOnly || C.append(view, hasKey: true, hasValue: true, to: part, now: executor.now, into: &replies)
      else { return nil }
      count = 1
    }
    return FindResult(
      revision: map.revisions.last, examinedDocuments: count, found: count,
      nanoseconds: monotonicNanoseconds() - startTime)
  }

  /// Whether the value of an entry is known to be a document, or turns out to be one.
  private static func isObject(
    _ view: EntryView, at handle: UInt32, of map: borrowing EntryMap, on executor: inout Executor
  ) -> Bool {
    if view.isKnownObject { return true }
    guard let value = unsafe view.value,
      executor.isObject(unsafe StoredEntry(view, EntryHead(handle, view), value: value))
    else { return false }
    map.noteObject(at: handle)
    return true
  }

  /// Returns the ranks of a page among those of all documents that are found.
  /// - Parameters:
  ///   - restCount: The number of documents from the page's first one on.
  ///   - count: The number of documents on the page.
  private static func page(_ ranks: Range<Int>, _ restCount: Int, _ count: Int, isReversed: Bool) -> Range<Int> {
    guard isReversed else {
      let start = ranks.upperBound - restCount
      return start..<start + count
    }
    let end = ranks.lowerBound + restCount
    return end - count..<end
  }
}
