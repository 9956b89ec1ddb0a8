import Foundation
import Testing
import TypedQueries

/// Filters that are made of Foundation's predicates.
@Suite struct PredicateTests {
  private let rows = [
    Row(a: 1, b: 5, c: "x", d: .foo, name: "Anna", tags: ["u"], subs: [.init(price: 3)]),
    Row(a: 2, b: 2, d: .bar, name: "Bob", tags: [], subs: [.init(price: 9), .init(price: 1)]),
    Row(a: 3, b: 1, c: "y", name: "cleo", tags: ["u", "v"]),
  ]

  /// Checks that a predicate and its filter match the same rows.
  private func check(_ predicate: Predicate<Row>, _ expected: [Int]) throws {
    #expect(try rows.fetch(Row.all.where(Filter(predicate)), \.a) == expected)
    #expect(try rows.filter { try predicate.evaluate($0) }.map(\.a) == expected)
  }

  @Test func `comparisons and combinations in #Predicate become filters`() throws {
    try check(#Predicate { $0.a < 3 && $0.b > 2 }, [1])
    try check(#Predicate { $0.a <= 1 || $0.b >= 5 }, [1])
    try check(#Predicate { !($0.a == 2) && $0.a != 3 }, [1])
    try check(#Predicate { $0.a < $0.b }, [1])
    try check(#Predicate { $0.a + 1 == $0.b * 4 - 1 }, [])
    try check(#Predicate { $0.a * 2 > $0.b }, [2, 3])
    try check(#Predicate { $0.c == nil }, [2])
    try check(#Predicate { $0.c != "x" }, [2, 3])
    try check(#Predicate { 2 <= $0.a }, [2, 3])
    try check(#Predicate { _ in true }, [1, 2, 3])
  }

  @Test func `ranges, lists, strings and arrays in #Predicate become filters`() throws {
    let (low, names) = (2, ["Bob", "cleo"])
    try check(#Predicate { (2...3).contains($0.a) }, [2, 3])
    try check(#Predicate { (low..<3).contains($0.a) }, [2])
    try check(#Predicate { names.contains($0.name) }, [2, 3])
    try check(#Predicate { $0.name.contains("nn") }, [1])
    try check(#Predicate { $0.name.starts(with: "B") }, [2])
    try check(#Predicate { $0.tags.contains("v") }, [3])
    try check(#Predicate { $0.subs.contains { $0.price > 5 } }, [2])
    try check(#Predicate { $0.subs.allSatisfy { $0.price > 2 } }, [1, 3])
  }

  @Test func `an expression that filters don't have is an error`() {
    let filter = Filter<Row>(#Predicate { $0.b / 2 == 1 })
    let error = #expect(throws: FilterError.self) { try filter.selector }
    #expect(error?.code == .unsupportedExpression)
  }
}
