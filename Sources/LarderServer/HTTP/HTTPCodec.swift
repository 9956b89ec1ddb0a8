import Documents
import Storage
import Wire

/// Serves clients that speak HTTP.
struct HTTPSession: Session {
  typealias C = HTTPCodec
}

/// HTTP/1.1: `Protocol/http.yaml`. Commands on entries are those of Larder's own protocol, in other words; everything else
/// is in `HTTPCodec+Server` and `HTTPCodec+Documents`.
enum HTTPCodec: Codec {
  static var hasGreeting: Bool { false }
  static var isOrdered: Bool { true }
  static var translatesCommands: Bool { true }

  // MARK: Requests

  static func scan(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<HTTPRequest> {
    HTTPRequest.scan(bytes, at: offset, maxSize: maxSize)
  }

  /// A stranger's requests are limited when their heads have arrived, which may prove who it is: `replyToBeginning`.
  static func maxRequestSize(_ limits: borrowing ServerLimits, isStranger: Bool) -> Int { limits.maxFrameBytes }

  static func command(of request: HTTPRequest, _ bytes: RawSpan) throws(CommandFailure) -> Command {
    preconditionFailure("commands are translated")
  }

  static func translatedCommand(
    of request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection
  ) throws(CommandFailure) -> (Command, [UInt8]) {
    if let batch = connection.httpClient.takeBatch() { return batch }
    return try request.command(bytes)
  }

  static func key(of request: HTTPRequest, _ bytes: RawSpan) -> Range<Int>? { nil }

  static func isPermitted(_ request: HTTPRequest, _ bytes: RawSpan, by rights: StoreRights) -> Bool {
    // The execution says what is wrong with a malformed one.
    if request.route.resource == .tree {
      guard let part = try? KeyTreeRequest(request, bytes) else { return true }
      return unsafe rights.right(to: part.prefix.span.bytes) >= .read
    }
    guard let (command, body) = try? request.command(bytes) else { return true }
    return unsafe command.isPermitted(in: body.span.bytes, by: rights)
  }

  static func makeClientState(_ server: ServerState, _ mailbox: Mailbox, _ sharer: ConnectionSharer) -> AnyObject? {
    HTTPClientState()
  }

  static func executeOnEntries(
    _ request: HTTPRequest, _ bytes: RawSpan, of connection: inout Connection, on store: Store, _ map: inout EntryMap,
    executor: inout Executor, into replies: inout ReplyBuffer
  ) throws(Detour) -> CodecExecution? {
    let client = connection.httpClient
    guard client.isServed(by: request, bytes, connection.consoleSession, now: executor.now), !map.isDropped,
      client.hasBatch == request.route.isBatch, HTTPGate.refusalOfUnsupported(of: request, bytes) == nil,
      HTTPGate.refusalOfSite(of: request, bytes) == nil
    else {
      // It is executed again, without a store.
      connection.stores.close(1)
      throw .deferred
    }
    client.wasToldToContinue = false
    if request.route.resource == .tree {
      return try appendTree(request, bytes, &map, executor: &executor, into: &replies)
    }
    guard request.route.resource == .entry, request.hasConditions else { return nil }
    return try executeConditions(of: request, bytes, &map, executor: &executor, into: &replies)
  }

  static func isLast(_ request: HTTPRequest) -> Bool { request.isLast }

  /// Evaluates the conditions of a request on an entry and its range, and appends the reply that follows from them.
  /// - Returns: Nil if the request is to be executed as if it had none.
  private static func executeConditions(
    of request: HTTPRequest, _ bytes: RawSpan, _ map: inout EntryMap, executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(Detour) -> CodecExecution? {
    let key: [UInt8]
    do throws(CommandFailure) { key = try request.key(bytes) } catch { throw .failure(error) }
    let execution = unsafe try executor.get(key.span.bytes, &map)
    let entry: EntryView? = if case .entry(let found) = execution.outcome { found } else { nil }
    let verdict: HTTPVerdict
    do throws(CommandFailure) { verdict = try request.verdict(on: entry?.revision, bytes) } catch {
      throw .failure(error)
    }
    switch verdict {
    case .conditionFailed(let reason): throw .failure(.conditionFailed, reason, revealing: execution.shownRevision)
    case .notModified:
      replies.bytes.beginResponse(.notModified)
      replies.bytes.appendETag(entry?.revision ?? 0)
      replies.bytes.endHead()
      return CodecExecution(failure: nil, shownRevision: execution.shownRevision)
    case .execute: break
    }
    guard let entry else { return nil }
    switch request.range(ofValueWith: entry.valueByteCount, revision: entry.revision, bytes) {
    case .whole: return nil
    case .part(let range):
      appendHead(of: entry, range, now: executor.now, into: &replies)
      appendValue(of: entry, range, into: &replies)
      return CodecExecution(failure: nil, shownRevision: execution.shownRevision)
    case .notSatisfiable(let reason):
      replies.bytes.appendProblem(
        CommandFailure(.illegalArgument, reason), .rangeNotSatisfiable,
        field: ("Content-Range", "bytes */\(entry.valueByteCount)"))
      return CodecExecution(failure: .illegalArgument, shownRevision: execution.shownRevision)
    }
  }

  // MARK: Replies

  static func append(_ outcome: CommandOutcome, to request: UInt32, now: UInt64, into replies: inout ReplyBuffer) {
    let form = HTTPReplyForm(tag: request)
    switch outcome {
    case .entry(let entry):
      appendHead(of: entry, nil, now: now, into: &replies)
      guard !form.isHead else { return }
      if entry.valueByteCount >= AttachedValue.minSize, let value = entry.largeValue {
        replies.attach(value)
      } else {
        appendValue(of: entry, 0..<entry.valueByteCount, into: &replies)
      }
    case .range: preconditionFailure("a range is no command")
    case .absent:
      append(CommandFailure(.notFound, "there is no entry with this key"), to: request, into: &replies.bytes)
    case .number(0) where form.kind == .deletion:
      append(CommandFailure(.notFound, "there was no entry with this key"), to: request, into: &replies.bytes)
    case .number(let number): append(number, form, into: &replies)
    }
  }

  private static func append(_ number: UInt64, _ form: HTTPReplyForm, into replies: inout ReplyBuffer) {
    let json: String
    switch form.kind {
    case .count: json = "{\"count\":\(number)}"
    case .deletedCount: json = "{\"deleted\":\(number)}"
    case .revision: json = "{\"revision\":\"\(number)\"}"
    default:
      replies.bytes.beginResponse(.noContent)
      if form.kind == .write { replies.bytes.appendETag(number) }
      return replies.bytes.endHead()
    }
    replies.bytes.appendResponse(json: Array(json.utf8), isHead: form.isHead)
  }

  private static func appendHead(
    of entry: EntryView, _ range: Range<Int>?, now: UInt64, into replies: inout ReplyBuffer
  ) {
    replies.bytes.beginResponse(range == nil ? .ok : .partialContent, type: "application/octet-stream")
    replies.bytes.append(text: "Content-Disposition: attachment\r\nAccept-Ranges: bytes\r\n")
    replies.bytes.appendETag(entry.revision)
    if entry.expiry != 0 { replies.bytes.appendField("Larder-Expires-In", Int(clamping: entry.expiry &- now)) }
    if case .list = entry.kind { replies.bytes.append(text: "Larder-Kind: list\r\n") }
    if let range {
      replies.bytes.appendField(
        "Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(entry.valueByteCount)")
    }
    replies.bytes.appendField("Content-Length", range?.count ?? entry.valueByteCount)
    replies.bytes.endHead()
  }

  /// Appends a part of a value.
  /// - Parameter asLine: Whether it is JSON that must become a line.
  private static func appendValue(
    of entry: EntryView, _ range: Range<Int>, asLine: Bool = false, into replies: inout ReplyBuffer
  ) {
    if let value = unsafe entry.value {
      let start = replies.bytes.count
      unsafe replies.bytes.append(UnsafeRawBufferPointer(rebasing: value[range]))
      guard asLine else { return }
      unsafe replies.bytes.overwrite(at: start, byteCount: range.count) { room in unsafe room.makeLine() }
    } else if !range.isEmpty, let value = entry.separatedValue {
      unsafe replies.leaveRoom(
        for: range.count == entry.valueByteCount ? value : value.part(range), key: entry.key, asLine: asLine)
    }
  }

  static func append(_ outcome: LateOutcome, to request: UInt32, into replies: inout ReplyBuffer) {
    switch outcome {
    case .done where HTTPReplyForm(tag: request).kind == .creation:
      replies.bytes.appendResponse(.created, json: Array("{}".utf8))
    case .number(let number): append(number, HTTPReplyForm(tag: request), into: &replies)
    case .done, .failure: append(0, HTTPReplyForm(tag: request), into: &replies)
    case .changed(let changes): replies.bytes.appendResponse(json: changes.json.encoded())
    case .ensured(let index):
      replies.bytes.appendResponse(
        index.isCreated ? .created : .ok,
        json: JSONValue.object(["name": .string(index.name), "created": .bool(index.isCreated)]).encoded())
    }
  }

  static func append(_ failure: CommandFailure, to request: UInt32?, into bytes: inout ByteBuffer) {
    let isHead = request.map { HTTPReplyForm(tag: $0).isHead } ?? false
    bytes.appendProblem(failure, HTTPStatus(failure.code), isHead: isHead, isLast: request == nil)
  }

  // MARK: Streams

  /// The size of the line with a chunk's size, in bytes.
  private static let chunkHeaderSize = 10
  /// The size of a chunk, in bytes, at which a stream begins a new one.
  private static let maxChunkSize = 64 << 10

  static func beginPart(
    of request: UInt32, isFirst: Bool, through throughRevision: UInt64?, _ limits: borrowing ServerLimits,
    into replies: inout ReplyBuffer
  ) -> StreamPart {
    let form = HTTPReplyForm(tag: request)
    let start = replies.bytes.count
    if isFirst {
      replies.bytes.beginResponse(.ok, type: form.hasLines ? "application/x-ndjson" : "application/json")
      replies.bytes.append(text: "Transfer-Encoding: chunked\r\n")
      replies.bytes.endHead()
    }
    replies.bytes.append(text: "00000000\r\n")
    let payloadStart = replies.bytes.count
    if isFirst, !form.hasLines {
      replies.bytes.append(text: "{\"")
      replies.bytes.append(text: form.listName)
      replies.bytes.append(text: "\":[")
    }
    return StreamPart(
      tag: request, isFirst: isFirst, start: start, payloadStart: payloadStart, recordsStart: replies.bytes.count,
      maxEnd: payloadStart + maxChunkSize)
  }

  static func append(
    _ entry: EntryView?, hasKey: Bool, hasValue: Bool, to part: StreamPart, now: UInt64, into replies: inout ReplyBuffer
  ) -> Bool {
    guard let entry else { preconditionFailure("lists have no missing entries") }
    guard HTTPReplyForm(tag: part.tag).kind == .documents else {
      return append(HTTPEntry.json(entry, hasValue: hasValue, now: now), to: part, into: &replies)
    }
    let head = unsafe HTTPEntry.documentHead(
      key: Span(_unsafeElements: entry.key.assumingMemoryBound(to: UInt8.self)), revision: entry.revision,
      lifetime: entry.expiry == 0 ? 0 : entry.expiry &- now)
    guard part.fits(head.count + entry.valueByteCount + 2, in: replies) else { return false }
    beginRecord(of: part, into: &replies)
    replies.bytes.append(head)
    let asLine = HTTPReplyForm(tag: part.tag).hasLines
    appendValue(of: entry, 0..<entry.valueByteCount, asLine: asLine, into: &replies)
    endRecord("}", of: part, into: &replies)
    return true
  }

  private static func append(_ json: [UInt8], to part: StreamPart, into replies: inout ReplyBuffer) -> Bool {
    guard part.fits(json.count + 2, in: replies) else { return false }
    beginRecord(of: part, into: &replies)
    replies.bytes.append(json)
    endRecord("", of: part, into: &replies)
    return true
  }

  private static func beginRecord(of part: StreamPart, into replies: inout ReplyBuffer) {
    if !HTTPReplyForm(tag: part.tag).hasLines, !part.isFirst || !part.isEmpty(in: replies) {
      replies.bytes.append(text: ",")
    }
  }

  private static func endRecord(_ end: StaticString, of part: StreamPart, into replies: inout ReplyBuffer) {
    replies.bytes.append(text: end)
    if HTTPReplyForm(tag: part.tag).hasLines { replies.bytes.append(text: "\n") }
  }

  static func append(_ record: StreamRecord, to part: StreamPart, into replies: inout ReplyBuffer) -> Bool {
    switch record {
    case .object(let key, let value, let revision, let lifetime):
      let json = HTTPEntry.documentHead(key: key.span, revision: revision, lifetime: lifetime) + value
      return append(json + "}".utf8, to: part, into: &replies)
    case .row(let row): return append(Array(row), to: part, into: &replies)
    case .result(let result):
      let form = HTTPReplyForm(tag: part.tag)
      let json = result.json(isExplanation: form.kind == .explanation).encoded()
      if form.hasLines {
        return append(Array("{\"result\":".utf8) + json + "}".utf8, to: part, into: &replies)
      }
      guard part.fits(json.count + 16, in: replies) else { return false }
      replies.bytes.append(text: "],\"result\":")
      replies.bytes.append(json)
      replies.bytes.append(text: "}")
      return true
    case .change(let change, let hasValue, let lifetime):
      return append(HTTPEntry.json(change, hasValue: hasValue, lifetime: lifetime), to: part, into: &replies)
    case .incarnation(let incarnation):
      return append(Array("{\"incarnation\":\"\(incarnation)\"}".utf8), to: part, into: &replies)
    case .lost(let revision): return append(Array("{\"lost\":\"\(revision)\"}".utf8), to: part, into: &replies)
    }
  }

  static func end(
    _ part: StreamPart, through throughRevision: UInt64?, isLast: Bool, into replies: inout ReplyBuffer
  ) {
    let form = HTTPReplyForm(tag: part.tag)
    if let throughRevision { replies.bytes.append("{\"through\":\"\(throughRevision)\"}\n") }
    if isLast, !form.hasLines, form.kind == .entries { replies.bytes.append(text: "]}") }
    let size = replies.bytes.count - part.payloadStart
    if size == 0 {
      replies.bytes.truncate(to: part.payloadStart - chunkHeaderSize)
    } else {
      replies.bytes.replaceChunkSize(size, at: part.payloadStart - chunkHeaderSize)
      replies.bytes.append(text: "\r\n")
    }
    if isLast { replies.bytes.append(text: "0\r\n\r\n") }
  }

  static func append(_ failure: CommandFailure, toBegunStream request: UInt32, into bytes: inout ByteBuffer) {
    let form = HTTPReplyForm(tag: request)
    let problem = failure.problem(HTTPStatus(failure.code))
    let payload =
      form.hasLines
      ? Array("{\"error\":".utf8) + problem + "}\n".utf8 : Array("],\"error\":".utf8) + problem + "}".utf8
    bytes.append(text: "00000000\r\n")
    bytes.replaceChunkSize(payload.count, at: bytes.count - chunkHeaderSize)
    bytes.append(payload)
    bytes.append(text: "\r\n0\r\n\r\n")
  }
}

extension ByteBuffer {
  /// Writes the size of a chunk as eight hexadecimal digits.
  fileprivate mutating func replaceChunkSize(_ size: Int, at offset: Int) {
    var digits: UInt64 = 0
    for index in 0..<8 {
      let digit = UInt64(size >> (28 - 4 * index) & 15)
      digits |= (digit < 10 ? 0x30 + digit : 0x57 + digit) << UInt64(8 * index)
    }
    replace(at: offset, with: digits)
  }
}

extension HTTPEntry {
  /// Returns what precedes a document in a list: the beginning of an object.
  static func documentHead(key: Span<UInt8>, revision: UInt64, lifetime: UInt64) -> [UInt8] {
    var text = Array("{".utf8)
    unsafe key.withUnsafeBytes { unsafe append("id", $0, to: &text) }
    text += ",\"revision\":\"\(revision)\"".utf8
    if lifetime != 0 { text += ",\"expiresInMilliseconds\":\(lifetime)".utf8 }
    text += ",\"document\":".utf8
    return text
  }
}

extension FindResult {
  /// - Parameter isExplanation: Whether the text is the explanation of a plan, not a bookmark.
  fileprivate func json(isExplanation: Bool) -> JSONValue {
    var object: JSONObject = [
      "found": .integer(Int64(clamping: found)), "examinedDocuments": .integer(Int64(clamping: examinedDocuments)),
      "examinedKeys": .integer(Int64(clamping: examinedKeys)), "nanoseconds": .integer(Int64(clamping: nanoseconds)),
      "revision": .string("\(revision)"),
    ]
    if isExplanation {
      object["explanation"] = (try? JSONValue(parsing: text)) ?? .string(text)
    } else if !text.isEmpty {
      object["bookmark"] = .string(text)
    }
    return .object(object)
  }
}

extension MatchingChanges {
  fileprivate var json: JSONValue {
    .object([
      "matched": .integer(Int64(clamping: matched)), "changed": .integer(Int64(clamping: changed)),
      "revision": .string("\(revision)"), "examinedDocuments": .integer(Int64(clamping: examinedDocuments)),
      "examinedKeys": .integer(Int64(clamping: examinedKeys)), "nanoseconds": .integer(Int64(clamping: nanoseconds)),
    ])
  }
}
