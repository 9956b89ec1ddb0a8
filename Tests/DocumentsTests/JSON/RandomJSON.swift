import Documents

/// Random values, and random bytes that are almost JSON.
struct RandomJSON {
  private var random: any RandomNumberGenerator

  init(_ random: some RandomNumberGenerator) { self.random = random }

  // MARK: Values

  mutating func value(depth: Int = 4) -> JSONValue {
    switch Int.random(in: 0..<(depth > 0 ? 10 : 6), using: &random) {
    case 0: return .null
    case 1: return .bool(.random(using: &random))
    case 2: return .integer(integer())
    case 3: return .double(double())
    case 4, 5: return .string(string())
    case 6, 7: return .array((0..<count()).map { _ in value(depth: depth - 1) })
    default:
      var object = JSONObject()
      for _ in 0..<count() { object[string()] = value(depth: depth - 1) }
      return .object(object)
    }
  }

  /// Mostly few elements; sometimes more than an object searches one by one.
  private mutating func count() -> Int {
    .random(in: 0...(Int.random(in: 0..<20, using: &random) == 0 ? 40 : 4), using: &random)
  }

  private mutating func integer() -> Int64 {
    let special: [Int64] = [0, 1, -1, .max, .min, 1 << 53, 1 << 53 + 1, -(1 << 53) - 1]
    if Bool.random(using: &random) { return special.randomElement(using: &random)! }
    return Int64(bitPattern: random.next()) >> Int64.random(in: 0..<64, using: &random)
  }

  private mutating func double() -> Double {
    let special: [Double] = [
      0, -0.0, 0.5, 1, 5, 1e16, 1e-7, .pi, .leastNonzeroMagnitude, -.greatestFiniteMagnitude, 0x1p53, 0x1p63, -0x1p63,
      .infinity, -.infinity,
    ]
    if Bool.random(using: &random) { return special.randomElement(using: &random)! }
    let double = Double(bitPattern: random.next())
    return double.isNaN ? 0.1 : double
  }

  private mutating func string() -> String {
    let pieces = [
      "a", "b", "name", "\"", "\\", "/", "\n", "\u{0}", "\u{1F}", "\u{7F}", "é", "e\u{301}", "\u{FFFF}", "😀", " ",
    ]
    return (0..<Int.random(in: 0...5, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined()
  }

  // MARK: Text

  /// Tokens in any order, which often begin like JSON and sometimes are JSON.
  mutating func tokens() -> [UInt8] {
    let tokens = [
      "{", "}", "[", "]", ",", ":", " ", "\n", "\"\"", "\"a\"", "\"\\u00e9\"", "\"é\"", "0", "-1", "1.5e3", "true",
      "false",
      "null", "\"a\":", "{\"a\":1}", "[1,2]",
    ]
    return Array(
      (0..<Int.random(in: 0...8, using: &random)).map { _ in tokens.randomElement(using: &random)! }.joined().utf8)
  }

  /// A text with a few of its bytes replaced, removed or repeated.
  mutating func damaged(_ text: [UInt8]) -> [UInt8] {
    var text = text
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      guard let index = text.indices.randomElement(using: &random) else { break }
      switch Int.random(in: 0..<3, using: &random) {
      case 0: text[index] = UInt8.random(in: 0...255, using: &random)
      case 1: text.remove(at: index)
      default: text.insert(text[index], at: index)
      }
    }
    return text
  }
}

extension JSONValue {
  /// Arrays in each other.
  static func nested(_ depth: Int) -> JSONValue {
    (0..<depth).reduce(.null) { value, _ in .array([value]) }
  }
}
