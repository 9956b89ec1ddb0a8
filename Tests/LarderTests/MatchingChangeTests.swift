import Documents
import Platform
import Testing
import Wire

@testable import Larder

/// Changes of matching documents, and groups of them, with a server that replies what a test says.
@Suite(.serialized) struct MatchingChangeTests {
  private func store(_ server: FakeServer) throws -> RemoteStore {
    try LarderClient(server.address, configuration: configuration()).store("items")
  }

  private static let selector = Selector.field("age", .greater(12))

  // MARK: Changes

  @Test func `the requests of an update and a deletion have all their parts`() async throws {
    let bodies = Lock<[[UInt8]]>([])
    let server = try FakeServer { request in
      guard request.operation == .changeMatching else { return .answer }
      bodies.withLock { $0.append(request.body) }
      var body = ByteBuffer()
      body.append(
        MatchingChanges(
          matched: 3, changed: 2, revision: request.count > 2 ? 0 : 7, examinedDocuments: 5, examinedKeys: 6,
          nanoseconds: 1_500))
      return request.reply([body.toArray()])
    }
    let store = try store(server)
    let update = try DocumentUpdate(changes: [.set("pet", to: "cat")])
    let changes = [
      try await store.update(where: Self.selector, update), try await store.delete(where: Self.selector),
      try await store.update(where: .all, update, dryRun: true), try await store.delete(where: .all, dryRun: true),
    ]
    #expect(changes.map(\.revision) == [7, 7, nil, nil])
    for change in changes {
      #expect(change.matched == 3 && change.changed == 2)
      #expect(change.statistics.examinedDocumentCount == 5 && change.statistics.examinedKeyCount == 6)
      #expect(change.statistics.duration == .nanoseconds(1_500))
    }
    let (selector, text) = (#"{"age":{"$gt":12}}"#, #"{"$set":{"pet":"cat"}}"#)
    #expect(
      bodies.withLock { $0 } == [
        [0, 0, 0, 0, 18, 0, 0, 0] + selector.utf8 + text.utf8, [2, 0, 0, 0, 18, 0, 0, 0] + selector.utf8,
        [1, 0, 0, 0, 2, 0, 0, 0] + "{}".utf8 + text.utf8, [3, 0, 0, 0, 2, 0, 0, 0] + "{}".utf8,
      ])
  }

  @Test func `a change is not repeated when the connection is lost`() async throws {
    let server = try FakeServer { $0.operation == .changeMatching ? .hangUp([]) : .answer }
    let store = try store(server)
    let (error, _) = await failure { () async throws(LarderError) in try await store.delete(where: .all) }
    #expect(error?.kind == .disconnected && error?.outcome == .unknown && error?.isSafeToRetry == false)
    #expect(server.count(of: .changeMatching) == 1)
  }

  @Test(arguments: [0, 47, 49]) func `a reply of another size violates the protocol`(_ size: Int) async throws {
    let server = try FakeServer {
      $0.operation == .changeMatching ? $0.reply([[UInt8](repeating: 0, count: size)]) : .answer
    }
    let store = try store(server)
    let (error, _) = await failure { () async throws(LarderError) in try await store.delete(where: .all) }
    #expect(error?.kind == .protocolViolation)
  }

  @Test func `a change of documents fails on a server without support for it`() async throws {
    let server = try FakeServer(features: 0)
    let store = try store(server)
    let (error, _) = await failure { () async throws(LarderError) in try await store.delete(where: .all) }
    #expect(error?.kind == .unknownOperation && error?.outcome == .rejected)
    #expect(server.count(of: .changeMatching) == 0)
  }

  // MARK: Groups

  private static func row(_ json: String) -> [UInt8] {
    var buffer = ByteBuffer()
    unsafe Array(json.utf8).withUnsafeBytes { value in
      unsafe buffer.appendEntry(kind: .single, revision: 0, key: .init(start: nil, count: 0), value: value)
    }
    return buffer.toArray()
  }

  private static var result: [UInt8] {
    var buffer = ByteBuffer()
    buffer.append(FindResult(revision: 1, examinedDocuments: 3, found: 2, nanoseconds: 1))
    return buffer.toArray()
  }

  @Test func `groups have the values that they are grouped by, and what is computed`() async throws {
    let bodies = Lock<[[UInt8]]>([])
    let frames = [
      Self.row(#"{"by":[[],["x"]],"values":[[1],[]]}"#), [],
      Self.row(#"{"by":[["cat"],[null]],"values":[[2],[24.5]]}"#),
      Self.result,
    ]
    let server = try FakeServer { request in
      guard request.operation == .aggregate else { return .answer }
      bodies.withLock { $0.append(request.body) }
      return request.reply(frames)
    }
    let groups = try await store(server).groups(
      of: Self.selector, by: ["pet.species", "pet.name"], computing: [.count, .average("age")])
    #expect(groups.map(\.key) == [[nil, "x"], ["cat", .some(.null)]])
    #expect(groups.map(\.values) == [[1, nil], [2, 24.5]])
    let aggregation = #"{"by":["pet.species","pet.name"],"compute":["count",{"avg":"age"}]}"#
    let expected: [UInt8] = [0, 0, 0, 0, 18, 0, 0, 0] + #"{"age":{"$gt":12}}"#.utf8 + aggregation.utf8
    #expect(bodies.withLock { $0 } == [expected])
  }

  @Test func `distinct values are read from groups`() async throws {
    let frame = ["[]", "[null]", "[\"cat\"]"].flatMap { Self.row(#"{"by":[\#($0)],"values":[]}"#) } + Self.result
    let server = try FakeServer { $0.operation == .aggregate ? $0.reply([frame]) : .answer }
    #expect(try await store(server).distinct("pet.species") == [.null, "cat"])
  }

  @Test func `groups without a result, or of another form, violate the protocol`() async throws {
    let row = Self.row(#"{"by":[],"values":[[1]]}"#)
    let bodies: [[[UInt8]]] = [
      [[]], [row], [Self.result, row], [Self.result + row], [Self.row("{}") + Self.result],
      [Self.row("{") + Self.result], [Self.row(#"{"by":[1],"values":[]}"#) + Self.result], [row + [0]],
    ]
    for reply in bodies {
      let server = try FakeServer { $0.operation == .aggregate ? $0.reply(reply) : .answer }
      let store = try store(server)
      let (error, _) = await failure { () async throws(LarderError) in try await store.groups(by: []) }
      #expect(error?.kind == .protocolViolation, "\(reply)")
    }
  }

  @Test(arguments: [true, false])
  func `the client groups the documents itself if the server can't`(isAnnounced: Bool) async throws {
    let server = try FakeServer(features: isAnnounced ? Features.documents : 0) { request in
      request.operation == .aggregate ? request.error(.unknownOperation) : .answer
    }
    for (key, text) in [("a", #"{"n":1,"x":5}"#), ("b", #"{"n":[1,2]}"#), ("c", "[1]"), ("d", "{}")] {
      server.put(key, Array(text.utf8))
    }
    let store = try store(server)
    let groups = try await store.groups(by: ["n"], computing: [.count, .sum("x")])
    #expect(groups.map(\.key) == [[nil], [1], [2]])
    #expect(groups.map(\.values) == [[1, 0], [2, 5], [1, 0]])
    #expect(try await store.distinct("n", .field("n", .greater(1))) == [1, 2])
    #expect(server.count(of: .aggregate) == (isAnnounced ? 2 : 0) && server.count(of: .all) == 2)
  }
}
