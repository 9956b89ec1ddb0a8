import Documents
import Testing

/// The queries that the collection was asked for, in the order of the text that asked for them.
@Suite struct SeedTests {
  private let people = DocumentCollection()

  init() throws {
    try people.put(["name": "mike", "age": 12, "pet": ["species": "cat"]], id: "mike12")
    try people.put(["name": "mike", "age": 34, "pet": ["species": "dog"]], id: "mike34")
    try people.put(["name": "fred", "age": 23, "pet": ["species": "cat"]], id: "fred23")
  }

  private func ids(_ selector: JSONValue) throws -> [String?] { try people.find(selector).map(\.id) }

  // MARK: Indexes

  @Test func `an index is created over fields, also of objects in the document`() throws {
    let name = try people.ensureIndexed(["name", "age", "pet.species"], withName: "basic")
    #expect(name == "basic")
    #expect(people.listIndexes().map(\.name) == ["basic"])
    #expect(people.listIndexes().map(\.fields) == [["name", "age", "pet.species"]])
  }

  @Test func `creating an existing index again succeeds`() throws {
    for _ in 1...2 { #expect(try people.ensureIndexed(["name", "age"], withName: "basic") == "basic") }
    #expect(people.listIndexes().count == 1)
  }

  @Test func `to change an index, it is deleted first`() throws {
    try people.ensureIndexed(["name", "age"], withName: "basic")
    let error = #expect(throws: DocumentIndexError.self) { try people.ensureIndexed(["age"], withName: "basic") }
    #expect(error?.code == .otherDefinition)
    #expect(people.deleteIndex(named: "basic"))
    #expect(!people.deleteIndex(named: "basic"))
    #expect(try people.ensureIndexed(["age"], withName: "basic") == "basic")
  }

  @Test func `id and revision are always queryable`() throws {
    #expect(try ids(["_id": "mike34"]) == ["mike34"])
    let revision = try people.put(["name": "john"], id: "john")
    #expect(try ids(["_rev": .integer(Int64(revision))]) == ["john"])
    #expect(try ids(["_rev": ["$lt": .integer(Int64(revision))]]).count == 3)
  }

  // MARK: Selectors

  @Test func `a value without a condition is an equality`() throws {
    #expect(try ids(["pet.species": "cat"]) == ["fred23", "mike12"])
  }

  @Test func `a condition compares a field with a value`() throws {
    #expect(try ids(["age": ["$gt": 12]]) == ["fred23", "mike34"])
  }

  @Test func `clauses of a selector are joined by $and`() throws {
    #expect(try ids(["name": "fred", "pet.species": "cat"]) == ["fred23"])
  }

  @Test func `or finds the documents that match one of the clauses`() throws {
    let all = ["fred23", "mike12", "mike34"]
    #expect(try ids(["$or": [["pet.species": ["$eq": "dog"]], ["age": ["$lt": 30]]]]) == all)
  }

  @Test func `conditions of $and and $or can be combined`() throws {
    try people.put(["name": "mike", "age": 45, "pet": ["species": "cat"]], id: "mike45")
    try people.put(["name": "fred", "age": 45, "pet": ["species": "cat"]], id: "fred45")
    let selector: JSONValue = [
      "$or": [
        ["pet.species": ["$eq": "dog"]],
        ["$and": [["age": ["$gt": 30]], ["name": ["$eq": "mike"]]]],
      ]
    ]
    #expect(try ids(selector) == ["mike34", "mike45"])
  }

  @Test func `a result is enumerated with a loop`() throws {
    var ages: [Int64?] = []
    for document in try people.find(["name": "mike"]) { ages.append(try document.value()["age"]?.integer) }
    #expect(ages == [12, 34])
  }

  // MARK: Sort, fields, skip and limit

  @Test func `a sort has several fields, each with its direction`() throws {
    let sorted = try people.find([:], skip: 0, limit: 0, fields: nil, sort: [["name": "asc"], ["age": "desc"]])
    #expect(sorted.map(\.id) == ["fred23", "mike34", "mike12"])
  }

  @Test func `a result has only the fields that were asked for`() throws {
    let found = try people.find(["age": 12], skip: 0, limit: 0, fields: ["name", "age"], sort: nil)
    #expect(try found.map { try $0.value() } == [["name": "mike", "age": 12]])
    #expect(found.map(\.id) == ["mike12"])
  }

  @Test func `skip and limit return the twenty-first to thirtieth results`() throws {
    for number in 10..<50 { try people.put(["number": .integer(Int64(number))], id: "n\(number)") }
    let found = try people.find(["number": ["$exists": true]], skip: 20, limit: 10)
    #expect(found.map(\.id) == (30..<40).map { "n\($0)" })
  }

  @Test func `a limit of 0 returns everything`() throws {
    #expect(try people.find([:], skip: 0, limit: 0).count == 3)
    #expect(try people.find([:], skip: 1, limit: 0).count == 2)
  }

  // MARK: Arrays

  @Test func `a condition on an array is about its elements`() throws {
    try people.put(["pet": ["cat", "dog", "parrot"], "name": "mike", "age": 32], id: "mike32")
    try people.ensureIndexed(["name", "age", "pet"], withName: "basic")
    #expect(try ids(["pet": ["$eq": "cat"]]) == ["mike32"])
    #expect(try ids(["pet": ["$eq": "hamster"]]) == [])
  }

  @Test func `a $not in a field finds arrays with any element that doesn't satisfy the condition`() throws {
    try people.put(["pet": ["cat", "dog", "parrot"], "name": "mike", "age": 32], id: "mike32")
    try people.put(["pet": ["cat"], "name": "john", "age": 31], id: "john31")
    let found = try ids(["pet": ["$not": ["$eq": "cat"]]])
    #expect(found.contains("mike32"))
    #expect(!found.contains("john31"))
  }

  @Test func `several fields of an index may be arrays`() throws {
    try people.ensureIndexed(["name", "age", "pet"], withName: "all")
    try people.put(["pet": ["cat", "dog"], "name": ["mike", "rhodes"], "age": 32], id: "mike32")
    #expect(try ids(["name": "rhodes", "pet": "dog"]) == ["mike32"])
  }

  // MARK: Errors

  @Test func `an invalid query is an error with the reason`() throws {
    let error = #expect(throws: SelectorError.self) { try people.find(["age": ["$gth": 3]]) }
    #expect(error?.code == .unknownOperator)
    #expect(throws: SelectorError.self) { try people.find([:], skip: -1) }
    #expect(throws: SelectorError.self) { try people.find([:], fields: ["a..b"]) }
    #expect(throws: SelectorError.self) { try people.find([:], sort: [["name": "up"]]) }
  }
}
