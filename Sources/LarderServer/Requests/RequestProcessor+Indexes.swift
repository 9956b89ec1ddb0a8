import Documents
import Storage
import Wire

/// The indexes of a store: `Protocol/wire.md` §6.10. As with stores, no store is locked, and definitions are on disk
/// before the reply.
extension RequestProcessor {
  mutating func ensureIndex(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ store: Store,
    into replies: inout ReplyBuffer
  ) -> RequestResult {
    switch Self.index(body.toArray()) {
    case .success(let index):
      return change(.ensureIndex(index, of: store.name), header, &connection, store: store.name.text)
    case .failure(let failure): return replies.fail(failure.code, header.id, failure.message)
    }
  }

  private static func index(_ text: [UInt8]) -> Result<DocumentIndex, JobFailure> {
    do throws(DocumentIndexError) { return .success(try DocumentIndex(parsing: text.span)) } catch {
      return .failure(JobFailure(.illegalArgument, "\(error)"))
    }
  }

  mutating func deleteIndex(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ store: Store,
    into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard body.byteCount <= DocumentIndex.maxNameByteCount else {
      return replies.fail(.indexUnknown, header.id, "no index has such a long name")
    }
    return change(.deleteIndex(body.toString(), of: store.name), header, &connection, store: store.name.text)
  }

  mutating func listIndexes(
    _ body: RawSpan, _ id: UInt32, _ store: Store, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard body.byteCount == 0 else { return replies.fail(.malformed, id, BodyFlaw.ofEmpty(body)) }
    let text = JSONValue.array(store.indexReports.map(\.json)).encoded()
    guard text.count <= limits.maxFrameBytes - Frame.minLength else {
      return replies.fail(.failed, id, "the list of indexes is larger than a frame (limits.frame-bytes)")
    }
    let start = replies.bytes.beginReply(id: id)
    replies.bytes.append(text)
    replies.bytes.endFrame(start)
    return RequestResult()
  }
}

extension IndexReport {
  /// The report as an object of index-list.
  fileprivate var json: JSONValue {
    guard case .object(var object) = index.json else { preconditionFailure("a definition is an object") }
    switch state {
    case .complete: object["state"] = "ready"
    case .building(let progress):
      object["state"] = "building"
      object["progress"] = .double(progress)
    case .failed(let error):
      object["state"] = "failed"
      object["reason"] = .string("\(error)")
    }
    object["entries"] = .integer(Int64(entryCount))
    object["documents"] = .integer(Int64(documentCount))
    object["memoryBytes"] = .integer(Int64(memoryBytes))
    object["overflowDocuments"] = .integer(Int64(overflowCount))
    object["arrayFields"] = .array(arrayFields.map { .string($0.description) })
    return .object(object)
  }
}
