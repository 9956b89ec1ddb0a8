import Documents
import Platform
import Testing
import Wire

@testable import Larder

/// Indexes, with a server that has those that a test says.
@Suite(.serialized) struct IndexTests {
  private func store(_ server: FakeServer) throws -> RemoteStore {
    try LarderClient(server.address, configuration: configuration()).store("items")
  }

  /// Returns a server that replies to an operation with a text.
  private func server(_ operation: Wire.Operation, _ text: String) throws -> FakeServer {
    try FakeServer { $0.operation == operation ? $0.reply([Array(text.utf8)]) : .answer }
  }

  // MARK: Ensuring

  @Test func `an index is ensured by its definition`() async throws {
    let bodies = Lock<[[UInt8]]>([])
    let server = try FakeServer { request in
      guard request.operation == .indexEnsure else { return .answer }
      bodies.withLock { $0.append(request.body) }
      return request.reply([[request.count == 1 ? 1 : 0] + "byAge".utf8])
    }
    let store = try store(server)
    let index = try DocumentIndex(
      ["name", .descending("age")], where: .field("pet.species", .equal("cat")), name: "byAge")
    #expect(try await store.ensureIndex(index))
    #expect(try await store.ensureIndex(index) == false)
    let name = try await store.ensureIndex(
      on: ["name", .descending("age")], where: .field("pet.species", .equal("cat")), name: "byAge")
    #expect(name == "byAge")
    let json = #"{"name":"byAge","fields":["name",{"age":"desc"}],"where":{"pet.species":"cat"}}"#
    #expect(bodies.withLock { $0 } == Array(repeating: Array(json.utf8), count: 3))
  }

  @Test func `an index that can't exist is refused without a request`() async throws {
    let server = try FakeServer()
    let store = try store(server)
    let (error, _) = await failure { () async throws(LarderError) in try await store.ensureIndex(on: []) }
    #expect(error?.kind == .illegalArgument && error?.outcome == .rejected)
    #expect(error?.message.contains("$.fields") == true)
    #expect(server.count(of: .indexEnsure) == 0)
  }

  @Test(arguments: [[], [1], [2, 97], [0xFF]] as [[UInt8]])
  func `a reply to ensuring without a name, or with another byte, violates the protocol`(_ body: [UInt8]) async throws {
    let server = try FakeServer { $0.operation == .indexEnsure ? $0.reply([body]) : .answer }
    let store = try store(server)
    let (error, _) = await failure { () async throws(LarderError) in try await store.ensureIndex(on: ["age"]) }
    #expect(error?.kind == .protocolViolation)
  }

  @Test(arguments: [(ErrorCode.indexExists, LarderError.Kind.indexExists), (.tooManyIndexes, .tooManyIndexes)])
  func `the server's errors are thrown`(_ code: ErrorCode, _ kind: LarderError.Kind) async throws {
    let server = try FakeServer { $0.operation == .indexEnsure ? $0.error(code, "as told") : .answer }
    let store = try store(server)
    let (error, _) = await failure { () async throws(LarderError) in try await store.ensureIndex(on: ["age"]) }
    #expect(error?.kind == kind && error?.code == code.rawValue && error?.outcome == .rejected)
    #expect(error?.message == "as told" && error?.isSafeToRetry == false)
  }

  @Test func `ensuring and deleting are not repeated when the connection is lost`() async throws {
    let server = try FakeServer { [.indexEnsure, .indexDelete].contains($0.operation) ? .hangUp([]) : .answer }
    let store = try store(server)
    let (ensured, _) = await failure { () async throws(LarderError) in try await store.ensureIndex(on: ["age"]) }
    let (deleted, _) = await failure { () async throws(LarderError) in try await store.deleteIndex(named: "age") }
    for error in [ensured, deleted] { #expect(error?.kind == .disconnected && error?.outcome == .unknown) }
    #expect(server.count(of: .indexEnsure) == 1 && server.count(of: .indexDelete) == 1)
  }

  // MARK: Listing

  @Test func `the indexes have their definitions, states and figures`() async throws {
    let server = try server(
      .indexList,
      """
      [{"name": "age", "fields": ["age"], "state": "building", "progress": 0.25, "entries": 10, "documents": 9,
        "memoryBytes": 4096, "overflowDocuments": 0, "arrayFields": [], "later": {}},
       {"name": "cats", "fields": ["pet.name", {"age": "desc"}], "where": {"pet.species": "cat"}, "state": "ready",
        "entries": 3, "documents": 2, "memoryBytes": 1024, "overflowDocuments": 1, "arrayFields": ["pet.name"]},
       {"name": "none", "fields": ["x"], "state": "failed", "reason": "no memory", "entries": 0, "documents": 0,
        "memoryBytes": 0, "overflowDocuments": 0, "arrayFields": []}]
      """)
    let indexes = try await store(server).indexes()
    #expect(
      try indexes.map(\.index) == [
        DocumentIndex(["age"] as [String]),
        DocumentIndex(["pet.name", .descending("age")], where: .field("pet.species", .equal("cat")), name: "cats"),
        DocumentIndex(["x"] as [String], name: "none"),
      ])
    #expect(indexes.map(\.state) == [.building, .ready, .failed])
    #expect(indexes.map(\.progress) == [0.25, 1, 0])
    #expect(indexes.map(\.failure) == [nil, nil, "no memory"])
    #expect(indexes.map(\.entries) == [10, 3, 0] && indexes.map(\.documents) == [9, 2, 0])
    #expect(indexes.map(\.memoryBytes) == [4_096, 1_024, 0])
    #expect(indexes.map(\.overflowDocuments) == [0, 1, 0])
    #expect(indexes.map(\.arrayFields) == [[], ["pet.name"], []])
    #expect(try await store(self.server(.indexList, "[]")).indexes().isEmpty)
  }

  @Test(
    arguments: [
      "", "{}", "[1]", "[{}]", #"[{"state":"odd"}]"#, #"[{"fields":[]}]"#, #"[{"entries":-1}]"#,
      #"[{"documents":"1"}]"#, #"[{"arrayFields":[1]}]"#, #"[{"arrayFields":{}}]"#,
    ])
  func `a list of another form violates the protocol`(_ text: String) async throws {
    var text = text
    // What is wrong comes last, and the last one of equal members counts.
    if text.hasPrefix(#"[{""#) {
      let members =
        #""name":"a","fields":["a"],"state":"ready","entries":0,"documents":0,"memoryBytes":0,"overflowDocuments":0"#
      text = #"[{\#(members),"arrayFields":[],\#(text.dropFirst(2))"#
    }
    let server = try server(.indexList, text)
    let store = try store(server)
    let (error, _) = await failure { () async throws(LarderError) in try await store.indexes() }
    #expect(error?.kind == .protocolViolation, "\(text)")
  }

  // MARK: Deleting

  @Test func `deleting an index returns whether it existed`() async throws {
    let server = try FakeServer { request in
      guard request.operation == .indexDelete else { return .answer }
      return request.body == Array("größe".utf8) ? request.reply([[]]) : request.error(.indexUnknown)
    }
    let store = try store(server)
    #expect(try await store.deleteIndex(named: "größe"))
    #expect(try await store.deleteIndex(named: "age") == false)
  }

  // MARK: Waiting

  /// Returns a server whose index goes through the states, one for each list.
  private func server(building states: [String]) throws -> FakeServer {
    try FakeServer { request in
      guard request.operation == .indexList else { return .answer }
      let state = states[min(request.count, states.count) - 1]
      let figures = #""entries":0,"documents":0,"memoryBytes":0,"overflowDocuments":0,"arrayFields":[]"#
      let text = state.isEmpty ? "[]" : #"[{"name":"age","fields":["age"],"state":\#(state),\#(figures)}]"#
      return request.reply([Array(text.utf8)])
    }
  }

  @Test func `waiting shows the progress and ends when the index is ready`() async throws {
    let server = try server(building: [#""building""#, #""building","progress":0.5"#, #""ready""#])
    let progress = Lock<[Double]>([])
    let index = try await store(server).waitForIndex(named: "age") { index in
      progress.withLock { $0.append(index.progress) }
    }
    #expect(index.state == .ready && index.index.name == "age")
    #expect(progress.withLock { $0 } == [0, 0.5])
    #expect(server.count(of: .indexList) == 3)
  }

  @Test(
    arguments: [
      (["", "\"ready\""], LarderError.Kind.indexUnknown), (["\"building\"", ""], .indexUnknown),
      (["\"building\"", #""failed","reason":"no memory""#], .failed),
    ])
  func `waiting ends if the index is deleted or can't be built`(
    _ states: [String], _ kind: LarderError.Kind
  ) async throws {
    let store = try store(server(building: states))
    let (error, _) = await failure { () async throws(LarderError) in try await store.waitForIndex(named: "age") }
    #expect(error?.kind == kind && error?.outcome == .rejected)
  }

  @Test func `waiting ends if its task is cancelled`() async throws {
    let store = try store(server(building: ["\"building\""]))
    let task = Task { try await store.waitForIndex(named: "age") }
    try await Task.sleep(for: .milliseconds(20))
    task.cancel()
    let result = await task.result
    #expect(throws: LarderError.self) { try result.get() }
  }
}
