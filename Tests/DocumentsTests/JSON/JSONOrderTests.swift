import Documents
import TestSupport
import Testing

@Suite struct `The total order of values` {
  private static let ascending: [JSONValue] = [
    nil, false, true, .double(.nan), .double(-.infinity), -1e300, .integer(.min), -1.5, -1, 0,
    .double(.leastNonzeroMagnitude), 1, 1.5,
    9_007_199_254_740_992, 9_007_199_254_740_993, 9_007_199_254_740_994.0, .integer(.max), 0x1p63, .double(.infinity),
    "", "\u{0}", "A", "B", "a", "aa", "b", "e\u{301}", "z", "\u{E9}", "\u{FFFF}", "😀",
    [], [nil], [nil, nil], [false], [1], [1, 2], [1, 3], [2], [[]], [[:]],
    [:], ["a": 1], ["a": 1, "b": 1], ["a": 1, "b": 2], ["a": 1, "c": 0], ["a": 2], ["b": 0],
  ]

  @Test func `values have the order that the documentation states`() {
    for (leftIndex, left) in Self.ascending.enumerated() {
      for (rightIndex, right) in Self.ascending.enumerated() {
        #expect((left < right) == (leftIndex < rightIndex), "\(left) \(right)")
        #expect((left == right) == (leftIndex == rightIndex), "\(left) \(right)")
      }
    }
  }

  @Test func `different forms of the same value are equal`() {
    #expect((1 as JSONValue) == 1.0 && (0 as JSONValue) == -0.0)
    #expect(["a": 1, "b": [2]] as JSONValue == ["b": [2.0], "a": 1])
    #expect((0 as JSONValue) != false && ("1" as JSONValue) != 1 && ("é" as JSONValue) != "e\u{301}")
  }

  @Test func `the order of values is total, antisymmetric and transitive`() {
    var random = RandomJSON(SeededGenerator.announced())
    for _ in 0..<60 {
      let values = (0..<12).map { _ in random.value(depth: 2) } + [.double(.nan), nil, 0, -0.0]
      for a in values {
        #expect(a == a && !(a < a))
        for b in values {
          #expect([a < b, a == b, b < a].count { $0 } == 1, "\(a) \(b)")
          for c in values where a <= b && b <= c {
            #expect(a <= c, "\(a) \(b) \(c)")
            if a == b && b == c { #expect(a == c, "\(a) \(b) \(c)") }
          }
        }
      }
    }
  }
}
