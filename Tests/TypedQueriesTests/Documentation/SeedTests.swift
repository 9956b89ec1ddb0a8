import Foundation
import Larder
import LarderTesting
import Testing
import TypedQueries

/// The queries that the interface was designed for, as they were written.
@Suite struct SeedTests {
  struct T: Codable, Queryable, Equatable, Identifiable {
    var id: Int
    var count = 0
    var date = Date(timeIntervalSinceReferenceDate: 0)
    var name = ""
    var marker = ""
    var amount = 0
    var foo = Foo()

    struct Foo: Codable, Equatable {
      var bars: [Int] = []
    }
  }

  struct Author: Codable, Queryable, Equatable {
    var name: String
    var age: Int
  }

  private func ids(_ filter: Filter<T>, in rows: [T]) throws -> [Int] { try rows.fetch(T.all.where(filter), \.id) }

  @Test func `any combination of where, sort, limit and offset is a request`() throws {
    let rows = (1...5).map { T(id: $0, count: $0 % 2) }
    let query =
      T
      .all
      .where(\T.count == 1)
      .sort(\.id, ascending: false)
      .limit(2)
      .offset(1)
    #expect(try rows.fetch(query, \.id) == [3, 1])
    #expect(try rows.fetch(T.all.offset(3).where(\T.id > 1), \.id) == [5])
    #expect(try rows.fetch(T.all) == rows)
  }

  @Test func `operators of filters are written on key paths`() throws {
    let rows = [
      T(id: 1, count: 10), T(id: 2, date: .distantFuture), T(id: 4, date: .distantFuture),
      T(id: 5, count: 9, date: .distantPast),
    ]
    #expect(try ids(\T.count == 10 || \T.date > Date() && !(\T.id === [1, 2, 3]), in: rows) == [1, 4])
  }

  @Test func `text queries of filters are functions`() throws {
    let rows = [T(id: 1, count: 10), T(id: 2, name: "a FOO"), T(id: 3, name: "foo b")]
    #expect(try ids(\T.count == 10 || Query.endsWith(\T.name, "foo"), in: rows) == [1, 2])
  }

  @Test func `raw strings and expressions are combined`() throws {
    let rows = [T(id: 4, foo: .init(bars: [1])), T(id: 4, name: "none"), T(id: 5)]
    #expect(try rows.fetch(T.all.where(\T.id == 4 && !"foo.bars.@count > 0"), \.name) == ["none"])
  }

  @Test func `each operator has its function`() throws {
    let rows = (1...4).map { T(id: $0) }
    #expect(try ids(Query.equalTo(\T.id, 2), in: rows) == [2])
    #expect(try ids(Query.notEqualTo(\T.id, 2), in: rows) == [1, 3, 4])
    #expect(try ids(Query.lessThan(\T.id, 2), in: rows) == [1])
    #expect(try ids(Query.lessThanOrEqualTo(\T.id, 2), in: rows) == [1, 2])
    #expect(try ids(Query.greaterThan(\T.id, 2), in: rows) == [3, 4])
    #expect(try ids(Query.greaterThanOrEqualTo(\T.id, 2), in: rows) == [2, 3, 4])
    #expect(try ids(Query.in(\T.id, [2, 3]), in: rows) == [2, 3])
    #expect(try ids(Query.and(\T.id > 1, Query.not(\T.id > 2)), in: rows) == [2])
    #expect(try ids(Query.or(\T.id == 1, \T.id == 4), in: rows) == [1, 4])
    #expect(try ids(Query.and(), in: rows) == [1, 2, 3, 4])
    #expect(try ids(Query.or(), in: rows) == [])
  }

  @Test func `a request is sorted by several fields`() throws {
    let authors = [
      Author(name: "b", age: 1), Author(name: "a", age: 1), Author(name: "a", age: 3), Author(name: "a", age: 2),
    ]
    let query =
      Author
      .all
      .sort(\.name, ascending: true)
      .sort(\.age, ascending: false)
    #expect(try authors.fetch(query).map(\.age) == [3, 2, 1, 1])
  }

  private static let exampleRows = [
    T(id: 1, name: "z", marker: "a"), T(id: 2, name: "y", amount: 11), T(id: 3, name: "Index"), T(id: 4, name: "x"),
    T(id: 5, name: "b", marker: "d"), T(id: 6, name: "c", marker: "d"), T(id: 7, name: "d", marker: "d"),
  ]

  @Test func `the seed's final example finds what it says`() throws {
    let query =
      T
      .all
      .where(\T.marker === ["a", "d"] || \T.amount > 10 || Query.endsWith(\T.name, "ex"))
      .sort(\.name)
      .limit(5)
    #expect(try Self.exampleRows.fetch(query, \.id) == [3, 5, 6, 7, 2])
  }

  /// A call for the server waits, which Swift marks with `await`. Everything else is as it was written.
  @Test func `the seed's final example runs in a transaction`() async throws {
    let server = try TestServer.start(stores: ["t": "memory"])
    let db = server.client.store("t")
    try await db.perform { ctx in
      for row in Self.exampleRows { try await ctx.insert(row) }
    }
    let query =
      T
      .all
      .where(\T.marker === ["a", "d"] || \T.amount > 10 || Query.endsWith(\T.name, "ex"))
      .sort(\.name)
      .limit(5)

    let result = try await db.perform { ctx in
      try await ctx.fetch(query).map { try $0.decode() }
    }
    #expect(result.map(\.id) == [3, 5, 6, 7, 2])
    #expect(try await db.fetch(query) == result)
  }
}
