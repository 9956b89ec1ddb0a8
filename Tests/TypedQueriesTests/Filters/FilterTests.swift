import Documents
import Foundation
import Testing
import TypedQueries

/// Filters that depend on how values nest, and those that are made of lists.
@Suite struct FilterTests {
  struct Grid: Codable, Queryable {
    var matrix: [[Int]] = []
    var other: [[Int]]?
    var rows: [Line] = []
    var level: Level?
    var rank: Level = .low

    struct Line: Codable {
      var cells: [Int] = []
      var low = 1, high = 2
    }

    enum Level: String, Codable, Comparable {
      case low, medium, high

      static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }
  }

  private static let matrices: [[[Int]]] = [[], [[]], [[], []], [[1]], [[1], []], [[1, 2]], [[2], [1]]]
  private let grids = matrices.map { Grid(matrix: $0, other: $0) }

  private func matching(_ filter: Filter<Grid>) throws -> [[[Int]]] {
    try grids.fetch(Grid.all.where(filter), \.matrix)
  }

  @Test(arguments: matrices)
  func `an array equals a whole array, and not an element`(_ matrix: [[Int]]) throws {
    let others = Self.matrices.filter { $0 != matrix }
    #expect(try matching(\Grid.matrix == matrix) == [matrix])
    #expect(try matching(\Grid.matrix != matrix) == others)
    #expect(try matching(\Grid.other == matrix) == [matrix])
    #expect(try matching(\Grid.matrix === [matrix]) == [matrix])
    #expect(try matching(!(\Grid.matrix === [matrix, matrix])) == others)
    #expect(try matching(Filter(raw: "matrix = %@", matrix)) == [matrix])
    #expect(try matching(Filter(raw: "matrix != %@", matrix)) == others)
    #expect(try matching(Filter(raw: "matrix IN %@", [matrix])) == [matrix])
    for cells in matrix {
      let expected = Self.matrices.filter { $0.contains(cells) }
      #expect(try matching(Query.contains(\Grid.matrix, cells)) == expected)
      #expect(try matching(Query.any(\Grid.matrix) { \[Int].self == cells }) == expected)
      #expect(try matching(Filter(raw: "ANY matrix = %@", cells)) == expected)
      #expect(try matching(Filter(raw: "ANY matrix IN %@", [cells])) == expected)
      #expect(try matching(Filter(raw: "NONE matrix = %@", cells)) == Self.matrices.filter { !$0.contains(cells) })
    }
  }

  @Test func `two fields with arrays are not compared with each other`() {
    for filter in [\Grid.matrix == \Grid.matrix, \Grid.other != \Grid.other] as [Filter<Grid>] {
      let error = #expect(throws: FilterError.self) { try filter.selector }
      #expect(error?.code == .unsupportedExpression)
    }
  }

  @Test func `a list of arrays that contain each other has all of them, and no others`() throws {
    #expect(try matching(\Grid.matrix === Self.matrices) == Self.matrices)
    let values: [JSONValue] = [[], [[]], [[[]]], 1, .null, [1]]
    let others: [JSONValue] = [[[[[]]]], [[1]], 2, "x", [[], []]]
    let filter = Filter<Grid>(raw: "x IN %@", values)
    for (value, isExpected) in values.map({ ($0, true) }) + others.map({ ($0, false) }) {
      let document = Document(JSONValue.object(["x": value]).description)
      #expect(try filter.matches(document) == isExpected, "\(value)")
    }
    #expect(try filter.matches(Document("{}")))
  }

  @Test func `a filter for elements compares fields with values only`() {
    let filters: [Filter<Grid>] = [
      Query.any(\Grid.rows) { \Grid.Line.low < \Grid.Line.high }, Query.any(\Grid.rows) { "low + 1 = 2" },
      Query.all(\Grid.rows) { "cells.@count > 1" }, Query.none(\Grid.rows) { !("low = 2" && "ALL cells > 1") },
    ]
    for filter in filters {
      let error = #expect(throws: FilterError.self) { try filter.selector }
      #expect(error?.code == .unsupportedExpression)
      #expect(error?.reason.hasPrefix("a filter for elements compares their fields with values: ") == true)
    }
  }

  @Test func `filters accept lists of filters and sets of values`() throws {
    let filters: [Filter<Row>] = [\Row.a > 1, \Row.b == 2, "c = nil"]
    #expect(try Query.and(filters).selector == Query.and(filters[0], filters[1], filters[2]).selector)
    #expect(try Query.or(filters).selector == (filters[0] || filters[1] || filters[2]).selector)
    #expect(try Query.and([Filter<Row>]()).selector == .all)
    #expect(try Query.or([Filter<Row>]()).selector == !.all)
    let numbers = Set(1...9)
    #expect(try (\Row.a === numbers).selector == (\Row.a === (1...9).map { $0 }).selector)
    let names: Set<String?> = ["x", nil]
    let rows = [Row(a: 1, c: "x"), Row(a: 2, c: "y"), Row(a: 3)]
    #expect(try rows.fetch(Row.all.where(\Row.c === names), \.a) == [1, 3])
  }

  @Test func `optional numbers are incremented, and raw values have a least and a greatest one`() throws {
    struct Counter: Codable, Queryable { var count: Int? }
    #expect(try DocumentUpdate([.increment(\Counter.count)]) == DocumentUpdate(changes: [.increment("count")]))
    let rows = [Row(a: 1, d: .foo), Row(a: 2, d: .bar), Row(a: 3)]
    #expect(try rows.fetch(Row.all.min(\.d)) == .bar)
    #expect(try rows.fetch(Row.all.max(\.d)) == .foo)
    let grids = [Grid(level: .high, rank: .low), Grid(level: .medium, rank: .high), Grid()]
    #expect(try grids.fetch(Grid.all.min(\.level)) == .high)
    #expect(try grids.fetch(Grid.all.max(\.rank)) == .low)
    #expect(try grids.fetch(Grid.all.where(\Grid.rank > .high)).count == 2)
  }
}
