import DocumentTestSupport
import TestSupport
import Testing

@testable import Documents

@Suite struct OrderKeyTests {
  /// The key of a value in text, which is that of the value as a tree.
  private func key(_ value: JSONValue) -> [UInt8] {
    var key: [UInt8] = []
    Document(JSONValue.object(["v": value]).encoded()).withSource { source in
      source.value.forEachMember { _, value in OrderKey.append(value, to: &key) }
    }
    #expect(key == OrderKey.key(of: value), "\(value)")
    return key
  }

  private func sign(_ order: Int) -> Int { order.signum() }

  private func expectOrder(of values: [JSONValue]) {
    let keys = values.map(key)
    let complements = keys.map { $0.map(~) }
    for (value, (key, complement)) in zip(values, zip(keys, complements)) {
      #expect(OrderKey.missing.lexicographicallyPrecedes(key), "\(value)")
      for (otherValue, (otherKey, otherComplement)) in zip(values, zip(keys, complements)) {
        let order = sign(JSONValue.order(value, otherValue))
        if sign(key.span.order(otherKey.span)) != order { Issue.record("\(value) and \(otherValue)") }
        if order != 0, otherKey.starts(with: key) { Issue.record("the key of \(value) begins that of \(otherValue)") }
        if sign(complement.span.order(otherComplement.span)) != -order { Issue.record("\(value) and \(otherValue)") }
      }
    }
  }

  // MARK: Order

  @Test func `order keys sort like random values, and none is a prefix of another`() {
    var generator = QueryGenerator(.announced())
    expectOrder(of: (0..<(SeededGenerator.isThorough ? 1_500 : 250)).map { _ in generator.value(depth: 2) })
  }

  @Test func `order keys sort like random numbers, and none is a prefix of another`() {
    var random = SeededGenerator.announced()
    expectOrder(
      of: (0..<(SeededGenerator.isThorough ? 1_500 : 200)).map { number in
        let bits = UInt64.random(in: 0 ... .max, using: &random) >> UInt64.random(in: 0..<64, using: &random)
        switch number % 4 {
        case 0: return .integer(Int64(bitPattern: bits))
        case 1:
          let (power, sign) = (Int.random(in: 50..<63, using: &random), Bool.random(using: &random))
          let integer = Int64(1) << Int64(power) + Int64.random(in: -2...2, using: &random)
          return .integer(sign ? integer : -integer)
        case 2: return .double(Double(Int64(bitPattern: bits)))
        default:
          let double = Double(bitPattern: UInt64.random(in: 0 ... .max, using: &random))
          return .double(double.isNaN ? .infinity : double)
        }
      })
  }

  @Test func `order keys sort like random strings, and none is a prefix of another`() {
    var random = SeededGenerator.announced()
    let scalars: [Unicode.Scalar] = ["\0", "\u{1}", "\u{2}", "a", "b", "\u{7F}", "\u{80}", "\u{FFFF}", "\u{10FFFF}"]
    expectOrder(
      of: (0..<(SeededGenerator.isThorough ? 500 : 150)).map { number in
        var text = String.UnicodeScalarView()
        // Long strings that differ only at their ends, and short ones.
        if number % 3 == 0 { text.append(contentsOf: repeatElement("x", count: 2_000)) }
        for _ in 0..<Int.random(in: 0...4, using: &random) { text.append(scalars.randomElement(using: &random)!) }
        return .string(String(text))
      })
  }

  @Test func `order keys sort like numbers at the limits of integers and doubles`() {
    let numbers: [JSONValue] = [
      .double(-.infinity), -1e308, -1e19, .double(-0x1p63), .integer(.min + 1), .integer(-(1 << 53) - 1),
      .integer(-(1 << 53)), .integer(-(1 << 53) + 1), -0.5, 0, .double(.leastNonzeroMagnitude), 1, 1.5,
      .integer(1 << 53 - 1), .integer(1 << 53), .integer(1 << 53 + 1), .double(0x1p53 + 2), .integer(.max - 1),
      .integer(.max), .double(0x1p63), 1e308, .double(.infinity),
    ]
    for (left, right) in zip(numbers, numbers.dropFirst()) {
      #expect(key(left).lexicographicallyPrecedes(key(right)), "\(left) and \(right)")
    }
    #expect(key(.integer(.min)) == key(.double(-0x1p63)))
    #expect(key(.integer(1 << 53)) == key(.double(0x1p53)))
    #expect(key(.double(-0.0)) == key(0))
    #expect(key(.double(7)) == key(7))
  }

  // MARK: Bytes

  @Test(
    arguments: [
      (nil, [2]), (false, [3]), (true, [4]), (0, [5, 0x80]), (1, [5, 0xBF, 0xF8]), (2, [5, 0xC0]),
      (34, [5, 0xC1, 0x21, 0x40]), ("", [6, 0]), ("ab", [6, 0x61, 0x62, 0]),
      ("\0a\u{1}", [6, 1, 1, 0x61, 1, 2, 0]), ([], [7, 0]),
      ([0, ["a", []]], [7, 5, 0x80, 7, 6, 0x61, 0, 7, 0, 0, 0]),
      (["b": nil, "a": 0], [8, 1, 6, 0x61, 0, 5, 0x80, 1, 6, 0x62, 0, 2, 0]),
      (9_007_199_254_740_992, [5, 0xC3, 0xA0, 0x80, 0]),
      (9_007_199_254_740_993, [5, 0xC3, 0xA0, 0x80, 1]),
    ] as [(JSONValue, [UInt8])])
  func `order keys are compact`(_ value: JSONValue, _ bytes: [UInt8]) {
    #expect(key(value).map { String($0, radix: 16) } == bytes.map { String($0, radix: 16) })
  }

  @Test func `the text of a string is read from its key`() {
    for text in ["", "a", "\0", "\u{1}\0é", "a\0\0", "\u{2}"] {
      #expect(OrderKey.text(of: key(.string(text))) == Array(text.utf8))
    }
    for key in [[], [6], [6, 1], [6, 1, 0], [6, 1, 3, 0], [6, 0, 0], [5, 0x80], [6, 0x61, 1, 0]] as [[UInt8]] {
      #expect(OrderKey.text(of: key) == nil, "\(key)")
    }
  }

  // MARK: Ranges

  @Test func `order keys are between the bounds of their types`() {
    var generator = QueryGenerator(.announced())
    for value in [nil, false, true, [], [:], "", 0] + (0..<200).map({ _ in generator.value(depth: 1) }) {
      let key = key(value)
      for type in JSONType.allCases {
        let (lower, upper) = OrderKey.bounds(of: type)
        let isInside = !key.lexicographicallyPrecedes(lower) && key.lexicographicallyPrecedes(upper)
        #expect(isInside == (value.type == type), "\(value)")
      }
    }
  }

  @Test func `order keys begin with a prefix if their strings do`() {
    let texts = ["", "a", "ab", "a\0", "a\0b", "a\u{1}", "b", "é", "\u{1}"]
    for (prefix, text) in texts.flatMap({ prefix in texts.map { (prefix, $0) } }) {
      let isInside = key(.string(text)).starts(with: OrderKey.prefix(ofStringsBeginningWith: prefix))
      #expect(isInside == text.utf8.starts(with: prefix.utf8), "\(prefix.debugDescription), \(text.debugDescription)")
    }
  }

  @Test func `the size of a key at the start of bytes is found`() {
    var generator = QueryGenerator(.announced())
    for _ in 0..<(SeededGenerator.isThorough ? 20_000 : 500) {
      let key = OrderKey.key(of: generator.value(depth: 3))
      #expect(count(ofFirstIn: key + [1, 5, 0xFF]) == key.count)
      #expect(count(ofFirstIn: Array(key.dropLast())) == nil)
      #expect(count(ofFirstIn: key.map { ~$0 } + [1, 5, 0xFF], mask: 0xFF) == key.count)
      #expect(count(ofFirstIn: key.dropLast().map { ~$0 }, mask: 0xFF) == nil)
    }
    #expect(count(ofFirstIn: OrderKey.missing) == 1)
    #expect(count(ofFirstIn: [0]) == nil)
    #expect(count(ofFirstIn: [200]) == nil)
  }

  private func count(ofFirstIn bytes: [UInt8], mask: UInt8 = 0) -> Int? {
    OrderKey.count(ofFirstIn: bytes.span, mask: mask)
  }
}
