import TestSupport
import Testing

@testable import Documents

@Suite struct OrderKeyTests {
  private func key(_ value: JSONValue) -> [UInt8] {
    var key: [UInt8] = []
    Document(JSONValue.object(["v": value]).encoded()).withSource { source in
      source.value.forEachMember { _, value in OrderKey.append(value, to: &key) }
    }
    return key
  }

  private func sign(_ order: Int) -> Int { order.signum() }

  @Test func `keys have the order of random values, and none begins another`() {
    var generator = QueryGenerator(.announced())
    let values = (0..<(SeededGenerator.isThorough ? 1_500 : 250)).map { _ in generator.value(depth: 2) }
    let keys = values.map(key)
    var missing: [UInt8] = []
    OrderKey.appendMissing(to: &missing)
    for (value, key) in zip(values, keys) {
      #expect(missing.lexicographicallyPrecedes(key), "\(value)")
      for (otherValue, otherKey) in zip(values, keys) {
        let order = sign(JSONValue.order(value, otherValue))
        if sign(key.span.order(otherKey.span)) != order { Issue.record("\(value) and \(otherValue)") }
        if order != 0, otherKey.starts(with: key) { Issue.record("the key of \(value) begins that of \(otherValue)") }
      }
    }
  }

  @Test func `keys have the order of numbers at the limits of integers and doubles`() {
    let numbers: [JSONValue] = [
      .double(-.infinity), -1e308, -1e19, .double(-0x1p63), .integer(.min + 1), .integer(-(1 << 53) - 1),
      .integer(-(1 << 53)), -0.5, 0, .double(.leastNonzeroMagnitude), 1, 1.5, .integer(1 << 53 - 1),
      .integer(1 << 53), .integer(1 << 53 + 1), .double(0x1p53 + 2), .integer(.max - 1), .integer(.max),
      .double(0x1p63),
      1e308, .double(.infinity),
    ]
    for (left, right) in zip(numbers, numbers.dropFirst()) {
      #expect(key(left).lexicographicallyPrecedes(key(right)), "\(left) and \(right)")
    }
    #expect(key(.integer(.min)) == key(.double(-0x1p63)))
    #expect(key(.double(-0.0)) == key(0))
    #expect(key(.double(7)) == key(7))
  }
}
