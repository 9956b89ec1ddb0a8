import Foundation
import TestSupport
import Testing

@testable import Documents

@Suite struct `A JSON number` {
  private func value(_ text: String) throws -> JSONValue { try JSONValue(parsing: text) }

  /// The bits of a number that is read as a double; nil for an integer.
  private func bits(_ text: String) throws -> UInt64? {
    guard case .double(let double) = try value(text) else { return nil }
    return double.bitPattern
  }

  /// The nearest double, according to the C library.
  private func nearest(_ text: String) -> Double { unsafe strtod(text, nil) }

  @Test(
    arguments: [
      ("0", 0), ("-0", 0), ("7", 7), ("-1", -1), ("999999999999999999", 999_999_999_999_999_999),
      ("1000000000000000000", 1_000_000_000_000_000_000), ("9007199254740993", 9_007_199_254_740_993),
      ("9223372036854775807", .max), ("-9223372036854775808", .min), ("-9223372036854775807", -.max),
    ] as [(String, Int64)]) func `a 64-bit integer is read from JSON exactly`(text: String, integer: Int64) throws
  {
    #expect(try value(text).integer == integer)
  }

  @Test(
    arguments: [
      ("9223372036854775808", 0x1p63), ("-9223372036854775809", -0x1p63), ("18446744073709551615", 0x1p64),
      ("18446744073709551616", 0x1p64), ("99999999999999999999", 1e20), ("1.0", 1), ("-0.0", -0.0), ("0e5", 0),
      ("-0E-5", -0.0),
      ("1e2", 100), ("1E+2", 100), ("9007199254740993.0", 0x1p53), ("9007199254740993e0", 0x1p53), ("0.1", 0.1),
      ("5e-324", .leastNonzeroMagnitude), ("2.4703282292062327e-324", 0),
      ("2.4703282292062328e-324", .leastNonzeroMagnitude),
      ("2.2250738585072014e-308", .leastNormalMagnitude), ("2.2250738585072011e-308", .leastNormalMagnitude.nextDown),
      ("1.7976931348623157e308", .greatestFiniteMagnitude), ("1.7976931348623158e308", .greatestFiniteMagnitude),
      ("1.7976931348623159e308", .infinity), ("1e400", .infinity), ("-1e400", -.infinity), ("1e-400", 0),
      ("-1e-400", -0.0),
      ("1e99999999999999999999", .infinity), ("1e-99999999999999999999", 0), ("0e99999999999999999999", 0),
      ("1e22", 1e22), ("1e23", 1e23), ("8.5e22", 8.5e22), ("123456789012345678e-22", 1.2345678901234568e-05),
    ] as [(String, Double)]) func `a number other than a 64-bit integer is read as the nearest double`(
      text: String, double: Double
    ) throws
  {
    #expect(try bits(text) == double.bitPattern)
  }

  @Test func `a number with any digits is read as the nearest double`() throws {
    var random = SeededGenerator.announced()
    func digits(_ counts: ClosedRange<Int>) -> String {
      (0..<Int.random(in: counts, using: &random)).map { _ in String(Int.random(in: 0...9, using: &random)) }.joined()
    }
    for _ in 0..<20_000 {
      let sign = Bool.random(using: &random) ? "-" : ""
      let whole = Bool.random(using: &random) ? "0" : String(Int.random(in: 1...9, using: &random)) + digits(0...22)
      let fraction = Bool.random(using: &random) ? "" : "." + digits(1...22)
      let range = Bool.random(using: &random) ? -30...30 : -345...310
      let exponent = Bool.random(using: &random) ? "" : "e\(Int.random(in: range, using: &random))"
      let text = sign + whole + fraction + exponent
      if let integer = Int64(text), fraction.isEmpty, exponent.isEmpty {
        #expect(try value(text).integer == integer, "\(text)")
      } else {
        #expect(try bits(text) == nearest(text).bitPattern, "\(text)")
        #expect(Double(text)?.bitPattern == nearest(text).bitPattern, "\(text)")
      }
    }
  }

  @Test func `a number near the middle of two doubles is read as the nearest one`() throws {
    var random = SeededGenerator.announced()
    for _ in 0..<500 {
      let double = Double(bitPattern: .random(in: 1..<0x7FE0_0000_0000_0000, using: &random))
      // All digits of the middle between a double and the next one, and the numbers next to it.
      let middle = exactText(double, double.nextUp)
      for text in [middle, middle + "1", String(middle.dropLast()) + "4"] {
        #expect(try bits(text) == nearest(text).bitPattern, "\(text)")
      }
    }
  }

  /// Returns the decimal digits of the middle between two positive doubles, which has at most 54 bits.
  private func exactText(_ low: Double, _ high: Double) -> String {
    let exponent = low.ulp.exponent - 1
    let significand = UInt64(low / low.ulp) * 2 + 1
    // Decimal digits, least significant first, of the significand times a power of 2 (or 5, shifted by the power of 10).
    var digits = String(significand).reversed().map { $0.wholeNumberValue! }
    for _ in 0..<abs(exponent) {
      var carry = 0
      for index in digits.indices {
        carry += digits[index] * (exponent < 0 ? 5 : 2)
        digits[index] = carry % 10
        carry /= 10
      }
      if carry > 0 { digits.append(carry) }
    }
    let text = digits.reversed().map(String.init).joined()
    return "\(text.prefix(1)).\(text.dropFirst())0e\(text.count - 1 + min(exponent, 0))"
  }

  @Test func `a number is the same after writing and reading`() throws {
    var random = SeededGenerator.announced()
    for _ in 0..<5_000 {
      let double = Double(bitPattern: random.next())
      guard !double.isNaN else { continue }
      #expect(try bits(JSONValue.double(double).description) == double.bitPattern)
      let integer = Int64(bitPattern: random.next()) >> Int64.random(in: 0..<64, using: &random)
      #expect(try value(JSONValue.integer(integer).description).integer == integer)
    }
    for double in [0.0, -0.0, 5.0, 1e16, .leastNonzeroMagnitude, -.greatestFiniteMagnitude, .infinity, -.infinity] {
      #expect(try bits(JSONValue.double(double).description) == double.bitPattern)
    }
    #expect(JSONValue.double(.nan).description == "null")
    #expect(JSONValue.double(.infinity).description == "1e999")
  }

  @Test(
    arguments: [
      (9_007_199_254_740_993, 9_007_199_254_740_992, 1), (9_007_199_254_740_992, 9_007_199_254_740_992, 0),
      (.max, 0x1p63, -1), (.min, -0x1p63, 0), (.min, -0x1.0000000000001p63, 1), (0, -0.0, 0),
      (0, .leastNonzeroMagnitude, -1),
      (0, -.leastNonzeroMagnitude, 1),
      (1, 1.5, -1), (-1, -1.5, 1), (2, 1.5, 1), (.max, .infinity, -1), (.min, -.infinity, 1), (.min, .nan, 1),
      (.max, 0x1.fffffffffffffp62, 1),
    ] as [(Int64, Double, Int)]) func `integers compare with doubles exactly`(
      integer: Int64, double: Double, order: Int
    )
  {
    #expect(JSONNumber.order(.integer(integer), .double(double)) == order)
    #expect(JSONNumber.order(.double(double), .integer(integer)) == -order)
    #expect((JSONValue.integer(integer) == .double(double)) == (order == 0))
  }

  @Test func `NaN has a place in the order of numbers`() {
    #expect(JSONNumber.order(.double(.nan), .double(.nan)) == 0)
    #expect(JSONNumber.order(.double(.nan), .double(-.infinity)) < 0)
    #expect(JSONNumber.order(.double(.infinity), .double(.nan)) > 0)
  }
}
