import Documents
import Glibc
import Wire

/// A find, as it is sent to a server.
struct FindText: Sendable {
  var selector: String
  var sort = ""
  var limit: Int? = DocumentsBench.page
  var skip = 0
}

/// What a server has found.
struct FoundPage {
  fileprivate(set) var texts: [String]
  /// The time that finding the documents took the server, in nanoseconds.
  let nanoseconds: UInt64
}

/// A blocking connection to a store of documents. Used by one thread.
struct DocumentConnection: ~Copyable {
  private let connection: SetupConnection
  private let handle: UInt16
  private static let maxFrameSize = Int(Int32.max)

  init(to server: DocumentAddress) throws {
    let connection = try SetupConnection(to: server.address, timeout: .seconds(60))
    handle = try LarderTarget(store: server.store, valueSize: 0, keysPerRequest: 1).handshake(connection)
    self.connection = connection
  }

  // MARK: Entries

  func put(_ documents: ArraySlice<NumberedDocument>) throws {
    _ = try call(.putMany) { body in
      body.append(UInt32(documents.count))
      for document in documents {
        unsafe body.appendWrite(kind: .single, key: document.key.span.bytes, value: document.text.span.bytes)
      }
    }
  }

  /// Returns a request that gets a document.
  func getRequest(_ document: NumberedDocument) -> [UInt8] { request(.get) { $0.append(document.key) } }

  /// Sends a request for a document.
  /// - Throws: `BenchError` if the reply has another document.
  func get(_ request: [UInt8], of document: NumberedDocument) throws {
    let reply = try exchange(request, count: 1)
    let body = unsafe reply.span.bytes
    guard let record = EntryRecord(body, at: Frame.headerSize), record.value.count == document.text.count,
      reply[record.value].elementsEqual(document.text)
    else { throw BenchError("a get returns another document") }
  }

  // MARK: Indexes

  func ensureIndex(_ fields: [String]) throws {
    let index = try DocumentIndex(fields)
    _ = try call(.indexEnsure) { $0.append(index.json.encoded()) }
  }

  /// Waits until all indexes are complete.
  func waitForIndexes() throws {
    while true {
      let list = try call(.indexList) { _ in }
      let states = try JSONValue(parsing: list.span)
      guard case .array(let indexes) = states else { throw BenchError("the list of indexes is malformed") }
      let names = indexes.map { index -> String? in
        if case .object(let members) = index { members["state"]?.string } else { nil }
      }
      if names.allSatisfy({ $0 == "ready" }) { return }
      guard names.allSatisfy({ $0 == "ready" || $0 == "building" }) else { throw BenchError("an index has failed") }
      usleep(5_000)
    }
  }

  // MARK: Finds

  /// Returns a request for a find.
  /// - Parameter id: A number that no other request has that is sent at the same time.
  func findRequest(_ find: FindText, id: UInt32 = 1) -> [UInt8] {
    let (selector, sort, none) = (Array(find.selector.utf8), Array(find.sort.utf8), [UInt8]())
    return request(.find, id: id) { body in
      unsafe body.appendFind(
        limit: find.limit.map { UInt32($0) }, skip: UInt64(find.skip), selector: selector.span.bytes,
        sort: sort.span.bytes, fields: none.span.bytes, bookmark: none.span.bytes)
    }
  }

  /// Sends finds at once.
  /// - Returns: What each has found.
  func find(_ requests: [UInt8], count: Int, withTexts: Bool = false) throws -> [FoundPage] {
    let replies = try exchange(requests, count: count)
    var pages: [FoundPage] = []
    var texts: [String] = []
    var offset = 0
    while case .frame(let header) = unsafe FrameScan(replies.span.bytes, at: offset, maxLength: Self.maxFrameSize) {
      let range = header.body(at: offset)
      let body = unsafe replies.span.bytes.extracting(range)
      offset = range.upperBound
      var position = 0
      while let record = EntryRecord(body, at: position), record.kind == .single {
        if withTexts { texts.append(body.extracting(record.value).toString()) }
        position = record.end
      }
      guard header.flags & Frame.more == 0 else { continue }
      guard let result = FindResult(body, at: position) else { throw BenchError("the reply to a find is malformed") }
      pages.append(FoundPage(texts: texts, nanoseconds: result.nanoseconds))
      texts = []
    }
    return pages
  }

  /// Sends a request about documents.
  /// - Returns: How many documents or groups are returned, or how many documents have changed.
  func count(_ request: [UInt8], of work: DocumentRequest) throws -> Int {
    let replies = try exchange(request, count: 1)
    switch work {
    case .get, .put: return 1
    case .updateOne, .updateMany:
      guard let changes = unsafe MatchingChanges(replies.span.bytes.extracting(Frame.headerSize..<replies.count)) else {
        throw BenchError("the reply to an update is malformed")
      }
      return Int(changes.changed)
    default: break
    }
    var (count, offset) = (0, 0)
    while case .frame(let header) = unsafe FrameScan(replies.span.bytes, at: offset, maxLength: Self.maxFrameSize) {
      let range = header.body(at: offset)
      let body = unsafe replies.span.bytes.extracting(range)
      var position = 0
      while let record = EntryRecord(body, at: position), record.kind == .single {
        count += 1
        position = record.end
      }
      offset = range.upperBound
    }
    // PostgreSQL returns a count as a row.
    return count == 0 && work.isCount ? 1 : count
  }

  // MARK: Requests

  /// Returns a request on the store, or on the server.
  func request(
    _ operation: Wire.Operation, id: UInt32 = 1, ofServer: Bool = false, _ appendBody: (inout ByteBuffer) -> Void
  ) -> [UInt8] {
    var buffer = ByteBuffer()
    let start = buffer.beginRequest(operation, store: ofServer ? 0 : handle, id: id)
    appendBody(&buffer)
    buffer.endFrame(start)
    return buffer.toArray()
  }

  /// Sends a request and returns the body of its reply.
  private func call(_ operation: Wire.Operation, _ appendBody: (inout ByteBuffer) -> Void) throws -> [UInt8] {
    Array(try exchange(request(operation, appendBody), count: 1).dropFirst(Frame.headerSize))
  }

  /// Sends requests at once and returns the frames of their replies.
  /// - Parameter permitsErrors: Whether replies may be errors.
  func exchange(_ requests: [UInt8], count: Int, permitsErrors: Bool = false) throws -> [UInt8] {
    var (offset, replyCount) = (0, 0)
    return try connection.exchange(requests) { bytes in
      while replyCount < count {
        switch FrameScan(bytes, at: offset, maxLength: Self.maxFrameSize) {
        case .partial: return nil
        case .invalid: throw BenchError("the server does not speak Larder's protocol")
        case .frame(let header):
          guard permitsErrors || header.kind == Outcome.done.rawValue else {
            throw BenchError("a request failed: \(bytes.extracting(header.body(at: offset)).toString())")
          }
          offset += header.frameSize
          if header.flags & Frame.more == 0 { replyCount += 1 }
        }
      }
      return offset
    }
  }
}
