import Documents
import Platform
import Testing
import Wire

@testable import Larder

/// Finds, with a server that finds every entry.
@Suite(.serialized) struct FindTests {
  private static let query = DocumentQuery(
    .field("age", .greater(12)), sort: [.ascending("name"), .descending("age")], skip: 1, limit: 20,
    fields: ["name", "pet.species"], bookmark: "bookmark")

  /// Returns a server with `count` documents of 20,000 bytes.
  private func server(_ count: Int, features: UInt32 = Features.documents) throws -> FakeServer {
    let server = try FakeServer(features: features)
    let text = String(repeating: "t", count: 20_000)
    for number in 0..<count { server.put("\(1_000 + number)", Array(#"{"n":\#(number),"t":"\#(text)"}"#.utf8)) }
    return server
  }

  private func store(
    _ server: FakeServer, _ change: (inout LarderClient.Configuration) -> Void = { _ in }
  ) throws -> RemoteStore {
    let configuration = configuration {
      $0.streamCreditBytes = 65_536
      change(&$0)
    }
    return try LarderClient(server.address, configuration: configuration).store("items")
  }

  private func ids(_ count: Int) -> [String?] { (0..<count).map { "\(1_000 + $0)" } }

  // MARK: Requests

  @Test func `the hello and the request of a find match the query`() async throws {
    let bodies = Lock<[Wire.Operation: [[UInt8]]]>([:])
    let server = try FakeServer { request in
      bodies.withLock { $0[request.operation, default: []].append(request.body) }
      return .answer
    }
    let store = try store(server)
    _ = try await store.find(Self.query).result()
    _ = try await store.find(.all).result()
    _ = try await store.find(DocumentQuery(skip: .max, limit: .max)).result()
    _ = try await store.count(.field("pet", .equal("cat")))
    _ = try await store.find(DocumentQuery(limit: 3), using: "größe").result()
    _ = try await store.count(.all, using: "byAge")
    let hello = try #require(bodies.withLock { $0[.hello] }?.first)
    let features = unsafe try ClientHello(body: hello.span.bytes).features
    #expect(features == Features.all)
    let expected: [[UInt8]] = [
      body(
        limit: 20, skip: 1, #"{"age":{"$gt":12}}"#, sort: #"[{"name":"asc"},{"age":"desc"}]"#,
        fields: #"["name","pet.species"]"#, bookmark: "bookmark"), body("{}"),
      body(limit: .max, skip: UInt64(Int.max), "{}"), body(countOnly: true, #"{"pet":"cat"}"#),
      body(limit: 3, "{}", index: "größe"), body(countOnly: true, "{}", index: "byAge"),
    ]
    #expect(bodies.withLock { $0[.find] } == expected)
    #expect(server.count(of: .all) == 0)
  }

  private func body(
    countOnly: Bool = false, explain: Bool = false, limit: UInt32? = nil, skip: UInt64 = 0, _ selector: String,
    sort: String = "", fields: String = "", bookmark: String = "", index: String? = nil
  ) -> [UInt8] {
    let (selector, sort) = (Array(selector.utf8), Array(sort.utf8))
    let (fields, bookmark) = (Array(fields.utf8), Array(bookmark.utf8))
    var buffer = ByteBuffer()
    unsafe buffer.appendFind(
      countOnly: countOnly, explain: explain, limit: limit, skip: skip, selector: selector.span.bytes,
      sort: sort.span.bytes, fields: fields.span.bytes, bookmark: bookmark.span.bytes, index: index)
    return buffer.toArray()
  }

  @Test func `a negative skip or limit is refused without a request`() async throws {
    let server = try server(1)
    let store = try store(server)
    for query in [DocumentQuery(skip: -1), DocumentQuery(limit: -1)] {
      let (error, _) = await failure { () async throws(LarderError) in try await store.find(query).result() }
      #expect(error?.kind == .illegalArgument && error?.outcome == .rejected)
    }
    #expect(server.count(of: .find) == 0)
  }

  @Test func `an index whose name is empty or too long is refused without a request`() async throws {
    let server = try server(1)
    let store = try store(server)
    for name in ["", String(repeating: "n", count: 129), String(repeating: "n", count: 70_000)] {
      let (found, _) = await failure { () async throws(LarderError) in
        try await store.find(DocumentQuery(), using: name).result()
      }
      let (counted, _) = await failure { () async throws(LarderError) in try await store.count(.all, using: name) }
      for error in [found, counted] { #expect(error?.kind == .illegalArgument && error?.outcome == .rejected) }
    }
    #expect(server.count(of: .find) == 0)
  }

  @Test func `an index is not ignored by a server that can't find documents`() async throws {
    let server = try server(1, features: 0)
    let store = try store(server)
    let (found, _) = await failure { () async throws(LarderError) in
      try await store.find(DocumentQuery(), using: "byAge").result()
    }
    let (counted, _) = await failure { () async throws(LarderError) in try await store.count(.all, using: "byAge") }
    let (explained, _) = await failure { () async throws(LarderError) in try await store.find(.all).explanation() }
    for error in [found, counted, explained] { #expect(error?.kind == .unknownOperation) }
    #expect(server.count(of: .all) == 0)
  }

  @Test func `an explanation has the plan and the statistics`() async throws {
    let bodies = Lock<[[UInt8]]>([])
    let server = try FakeServer { request in
      guard request.operation == .find else { return .answer }
      bodies.withLock { $0.append(request.body) }
      var body = ByteBuffer()
      body.append(
        FindResult(
          revision: 1, examinedDocuments: 3, examinedKeys: 4, found: 2, nanoseconds: 1_500,
          text: #"{"plan":{"kind":"scan"}}"#))
      return request.reply([body.toArray()])
    }
    let explanation = try await store(server).find(Self.query, using: "byAge").explanation()
    #expect(explanation.json == ["plan": ["kind": "scan"]])
    let statistics = explanation.statistics
    #expect(statistics.examinedDocumentCount == 3 && statistics.examinedKeyCount == 4)
    #expect(statistics.returnedDocumentCount == 2 && statistics.duration == .nanoseconds(1_500))
    let expected = body(
      explain: true, limit: 20, skip: 1, #"{"age":{"$gt":12}}"#, sort: #"[{"name":"asc"},{"age":"desc"}]"#,
      fields: #"["name","pet.species"]"#, bookmark: "bookmark", index: "byAge")
    #expect(bodies.withLock { $0 } == [expected])
  }

  @Test(arguments: ["", "{", "next"])
  func `an explanation that is not JSON violates the protocol`(_ text: String) async throws {
    var result = ByteBuffer()
    result.append(FindResult(revision: 1, examinedDocuments: 1, found: 1, nanoseconds: 1, text: text))
    let body = result.toArray()
    let server = try FakeServer { $0.operation == .find ? $0.reply([body]) : .answer }
    let store = try store(server)
    let (error, _) = await failure { () async throws(LarderError) in try await store.find(.all).explanation() }
    #expect(error?.kind == .protocolViolation)
  }

  // MARK: Replies

  @Test func `every document is returned, and then bookmark and statistics are known`() async throws {
    let server = try server(50)
    server.shared.withLock { $0.bookmark = "next" }
    var documents = try store(server).find(.all).makeAsyncIterator()
    for number in 0..<50 {
      let document = try await documents.next()
      #expect(document?.id == "\(1_000 + number)" && document?.revision == UInt64(number + 1))
      #expect(document?.text.count == 20_000 + #"{"n":,"t":""}"#.utf8.count + "\(number)".utf8.count)
      #expect(document?.isProjection == false)
      #expect(documents.bookmark == nil && documents.statistics == nil)
    }
    for _ in 0..<2 {
      #expect(try await documents.next() == nil)
      #expect(documents.bookmark == "next")
    }
    let statistics = try #require(documents.statistics)
    #expect(statistics.examinedDocumentCount == 51 && statistics.returnedDocumentCount == 50)
    #expect(statistics.duration == .nanoseconds(1_500))
  }

  @Test func `the result has the documents, the bookmark and the statistics`() async throws {
    let result = try await store(server(3)).find(DocumentQuery(fields: ["n"])).result()
    #expect(result.documents.map(\.id) == ids(3))
    #expect(result.documents.allSatisfy { $0.isProjection })
    #expect(result.bookmark == nil)
    #expect(result.statistics.returnedDocumentCount == 3)
    let none = try await store(server(0)).find(.all).result()
    #expect(none.documents.isEmpty && none.bookmark == nil && none.statistics.examinedDocumentCount == 1)
  }

  private struct Numbered: Decodable {
    let _id: String
    let _rev: Int
    let n: Int
  }

  @Test func `documents are decoded as values of a type, with key and revision`() async throws {
    let server = try server(3)
    server.shared.withLock { $0.bookmark = "next" }
    var values = try store(server).find(.all).decoded(as: Numbered.self).makeAsyncIterator()
    for number in 0..<3 {
      let value = try await values.next()
      #expect(value?._id == "\(1_000 + number)" && value?._rev == number + 1 && value?.n == number)
    }
    #expect(try await values.next() == nil)
    #expect(values.bookmark == "next" && values.statistics?.returnedDocumentCount == 3)
    server.put("2000", Array("{}".utf8))
    let count = Lock(0)
    await #expect(throws: DecodingError.self) {
      for try await _ in try store(server).find(.all).decoded(as: Numbered.self) { count.withLock { $0 += 1 } }
    }
    #expect(count.withLock { $0 } == 3)
  }

  @Test func `a frame without documents may come before others`() async throws {
    var result = ByteBuffer()
    result.append(FindResult(revision: 1, examinedDocuments: 1, found: 1, nanoseconds: 1))
    let bodies = [[], record(.single, "{}"), [], result.toArray()]
    let server = try FakeServer { request in
      request.operation == .find ? request.reply(bodies) : .answer
    }
    #expect(try await store(server).find(.all).result().documents.map(\.id) == ["k"])
  }

  @Test func `a count has no documents`() async throws {
    let server = try server(7)
    #expect(try await store(server).count(.all) == 7)
    #expect(server.shared.withLock { $0.framesSent } == 1)
  }

  @Test func `a slow consumer makes the server wait, and an iterator that is released cancels its reply`() async throws
  {
    let server = try server(50)
    let store = try store(server)
    for try await document in store.find(.all) {
      #expect(document.id == "1000")
      break
    }
    try await store.put("after", [])
    #expect(server.count(of: .cancel) == 1)
    #expect(server.shared.withLock { $0.framesSent } <= 5)
    #expect(server.shared.withLock { $0.connections } == 1)
  }

  @Test func `a server that doesn't reply is noticed at the deadline, and the find is cancelled`() async throws {
    let server = try server(5)
    server.set { $0.operation == .find ? .silence : .answer }
    let store = try store(server).with(timeout: .milliseconds(100))
    let (error, _) = await failure { () async throws(LarderError) in try await store.find(.all).result() }
    #expect(error?.kind == .timedOut && error?.isSafeToRetry == true)
    try await store.put("after", [])
    #expect(server.count(of: .cancel) == 1)
  }

  // MARK: Failures

  @Test func `a find is sent again if the connection is lost before anything was received`() async throws {
    let server = try server(5)
    server.set { $0.operation == .find && $0.count == 1 ? .hangUp([]) : .answer }
    #expect(try await store(server).find(.all).result().documents.map(\.id) == ids(5))
    #expect(server.count(of: .find) == 2)
    server.set { $0.operation == .find && $0.count == 3 ? .hangUp([]) : .answer }
    #expect(try await store(server).count(.all) == 5)
    #expect(server.count(of: .find) == 4)
  }

  @Test func `a find that is cut off keeps its documents and ends with an error`() async throws {
    let server = try server(50)
    server.set { $0.operation == .credit ? .hangUp([]) : .answer }
    var documents = try store(server).find(.all).makeAsyncIterator()
    var count = 0
    do {
      while try await documents.next() != nil { count += 1 }
      Issue.record("the reply has an end")
    } catch {
      #expect(error.kind == .disconnected && error.isSafeToRetry)
    }
    #expect(count >= 1 && count < 50)
    #expect(documents.statistics == nil)
    #expect(try await documents.next() == nil)
    #expect(server.count(of: .find) == 1)
  }

  @Test(arguments: [ErrorCode.queryStopped, .illegalArgument, .tooManyRequests])
  func `the server's errors are thrown`(_ code: ErrorCode) async throws {
    let server = try server(5)
    server.set { request in
      request.operation == .find ? request.error(code, "as told") : .answer
    }
    let store = try store(server)
    let (found, _) = await failure { () async throws(LarderError) in try await store.find(.all).result() }
    let (counted, _) = await failure { () async throws(LarderError) in try await store.count(.all) }
    for error in [found, counted] { #expect(error?.code == code.rawValue && error?.message == "as told") }
    #expect(server.count(of: .all) == 0)
  }

  @Test func `a reply without a result, or with something after it, violates the protocol`() async throws {
    let (document, list) = (record(.single, "{}"), record(.list, ""))
    var end = ByteBuffer()
    end.append(FindResult(revision: 1, examinedDocuments: 1, found: 1, nanoseconds: 1))
    let result = end.toArray()
    let bodies: [[[UInt8]]] = [
      [document], [[]], [result + document], [result + result], [result, result], [document, document],
      [list + result], [[0]], [document + Array(result.dropLast())],
    ]
    for reply in bodies {
      let server = try FakeServer { request in
        request.operation == .find ? request.reply(reply) : .answer
      }
      let store = try store(server)
      let (error, _) = await failure { () async throws(LarderError) in try await store.find(.all).result() }
      #expect(error?.kind == .protocolViolation, "\(reply)")
    }
  }

  private func record(_ kind: ValueKind, _ value: String) -> [UInt8] {
    let (key, value) = (Array("k".utf8), Array(value.utf8))
    var buffer = ByteBuffer()
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        unsafe buffer.appendEntry(kind: kind, revision: 1, key: key, value: value)
      }
    }
    return buffer.toArray()
  }

  // MARK: Servers without documents

  @Test(arguments: [true, false])
  func `the client finds the documents itself if the server can't`(isAnnounced: Bool) async throws {
    let server = try server(5, features: isAnnounced ? Features.documents : 0)
    server.put("array", Array("[1]".utf8))
    server.put("number", Array("1".utf8))
    server.set { request in
      request.operation == .find ? request.error(.unknownOperation) : .answer
    }
    let store = try store(server)
    let query = DocumentQuery(.field("n", .greater(0)), sort: [.descending("n")], limit: 2, fields: ["n"])
    let first = try await store.find(query).result()
    #expect(first.documents.map { String(decoding: $0.text, as: UTF8.self) } == [#"{"n":4}"#, #"{"n":3}"#])
    #expect(first.statistics.examinedDocumentCount == 7 && first.statistics.returnedDocumentCount == 2)
    var next = query
    next.bookmark = first.bookmark
    #expect(first.bookmark != nil)
    let last = try await store.find(next).result()
    #expect(last.documents.map(\.id) == ["1002", "1001"] && last.bookmark == nil)
    #expect(try await store.count(.field("n", .greater(0))) == 4)
    let (error, _) = await failure { () async throws(LarderError) in
      try await store.find(DocumentQuery(bookmark: "x")).result()
    }
    #expect(error?.kind == .illegalArgument)
    #expect(server.count(of: .all) == 3)
    #expect(server.count(of: .find) == (isAnnounced ? 4 : 0))
  }
}
