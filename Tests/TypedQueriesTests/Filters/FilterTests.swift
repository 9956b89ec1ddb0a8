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

    struct Line: Codable {
      var cells: [Int] = []
      var low = 1, high = 2
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
}
