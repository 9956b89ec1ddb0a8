/// A JSON number: exact for 64-bit integers, and the nearest double (an infinity beyond its range) for all others.
enum JSONNumber: Sendable {
  /// A number that is written without a fraction and an exponent.
  case integer(Int64)
  case double(Double)

  /// Reads a number that a scanner has passed.
  @unsafe
  init(_ text: UnsafeBufferPointer<UInt8>) {
    var (position, isNegative, magnitude, digits) = (0, false, UInt64(0), 0)
    if unsafe text[0] == UInt8(ascii: "-") { (isNegative, position) = (true, 1) }
    while position < text.count, let digit = unsafe Self.digit(text[position]) {
      magnitude = magnitude &* 10 &+ digit
      digits += 1
      position += 1
    }
    if position == text.count {
      if digits <= 18 {
        self = .integer(isNegative ? -Int64(magnitude) : Int64(magnitude))
        return
      }
      // 19 digits always fit into 64 bits without a sign; 20 may have wrapped around.
      let limit = UInt64(Int64.max) + (isNegative ? 1 : 0)
      if digits == 19, magnitude <= limit {
        self = .integer(Int64(truncatingIfNeeded: isNegative ? 0 &- magnitude : magnitude))
        return
      }
      self = unsafe .double(Self.nearest(text))
      return
    }
    var exponent = 0
    if unsafe text[position] == UInt8(ascii: ".") {
      position += 1
      while position < text.count, let digit = unsafe Self.digit(text[position]) {
        magnitude = magnitude &* 10 &+ digit
        digits += 1
        exponent -= 1
        position += 1
      }
    }
    if position < text.count {
      position += 1
      let isMinus = unsafe text[position] == UInt8(ascii: "-")
      if unsafe isMinus || text[position] == UInt8(ascii: "+") { position += 1 }
      var written = 0
      while position < text.count, let digit = unsafe Self.digit(text[position]) {
        written = min(written * 10 + Int(digit), 1_000_000)
        position += 1
      }
      exponent += isMinus ? -written : written
    }
    // If a double holds both the digits and the power of ten exactly, one operation rounds correctly (Clinger, 1990).
    guard digits <= 18, magnitude <= 1 << 53, abs(exponent) <= 22 else {
      self = unsafe .double(Self.nearest(text))
      return
    }
    let power = Self.powersOfTen[abs(exponent)]
    let value = exponent < 0 ? Double(magnitude) / power : Double(magnitude) * power
    self = .double(isNegative ? -value : value)
  }

  @inline(__always)
  private static func digit(_ byte: UInt8) -> UInt64? {
    let digit = byte &- UInt8(ascii: "0")
    return digit < 10 ? UInt64(digit) : nil
  }

  /// The powers of ten that doubles hold exactly.
  private static let powersOfTen: [Double] = (0...22).map { power in
    (0..<power).reduce(1.0) { value, _ in value * 10 }
  }

  /// Returns the nearest double, by the standard library.
  private static func nearest(_ text: UnsafeBufferPointer<UInt8>) -> Double {
    guard let value = unsafe Double(String(decoding: text, as: UTF8.self)) else {
      preconditionFailure("a scanner passes numbers only")
    }
    return value
  }

  /// The nearest double.
  var double: Double {
    switch self {
    case .integer(let value): Double(value)
    case .double(let value): value
    }
  }
}

extension JSONNumber: Comparable {
  static func == (left: JSONNumber, right: JSONNumber) -> Bool { order(left, right) == 0 }
  static func < (left: JSONNumber, right: JSONNumber) -> Bool { order(left, right) < 0 }

  /// Compares numbers exactly, also where no double holds the integer. Not-a-number, which no text has, is less than
  /// any other number and equals itself.
  /// - Returns: A negative number, zero or a positive number.
  @inline(__always)
  static func order(_ left: JSONNumber, _ right: JSONNumber) -> Int {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): left < right ? -1 : left > right ? 1 : 0
    case (.double(let left), .double(let right)): order(left, right)
    case (.integer(let left), .double(let right)): order(left, right)
    case (.double(let left), .integer(let right)): -order(right, left)
    }
  }

  @inline(__always)
  private static func order(_ left: Double, _ right: Double) -> Int {
    if left < right { return -1 }
    if left > right { return 1 }
    if left == right { return 0 }
    return (left.isNaN ? 0 : 1) - (right.isNaN ? 0 : 1)
  }

  private static func order(_ integer: Int64, _ double: Double) -> Int {
    // 2⁶³ and beyond, on either side, is no 64-bit integer.
    if double >= 0x1p63 { return -1 }
    if double < -0x1p63 || double.isNaN { return 1 }
    let whole = Int64(double)
    if integer != whole { return integer < whole ? -1 : 1 }
    let fraction = double - Double(whole)
    return fraction > 0 ? -1 : fraction < 0 ? 1 : 0
  }
}
