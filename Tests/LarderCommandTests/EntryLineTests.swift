import Basics
import Foundation
import Larder
import Testing

@testable import larder

@Suite struct `An entry's line` {
  private func line(_ entry: Entry) -> [UInt8] {
    var output: [UInt8] = []
    EntryLine.append(entry, to: &output)
    return output
  }

  private func parse(_ line: [UInt8]) throws -> Write {
    let line = Array(line.dropLast())
    var parser = EntryLineParser(keyField: nil)
    return try parser.parse(line.span)
  }

  /// Returns whether the entry's line is one line of JSON, also for Foundation, from which the same entry can be
  /// parsed.
  private func roundTrips(_ entry: Entry) throws -> Bool {
    let line = line(entry)
    guard line.last == 0x0A && !line.dropLast().contains(0x0A) else { return false }
    _ = try JSONSerialization.jsonObject(with: Data(line))
    let write = try parse(line)
    guard let expiry = entry.expiresIn, let left = write.expiresIn else {
      return write == Write(entry.key, entry.value, expiresIn: entry.expiresIn)
    }
    // The line has the time of the expiry, which has come closer since.
    return write == Write(entry.key, entry.value, expiresIn: left) && left <= expiry && left > expiry - .seconds(600)
  }

  @Test func `an entry's line is parsed byte for byte, whatever the entry contains`() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var random = Shuffle(state: seed)
    let pieces = [
      "{", "}", "[", "]", "\"", "\\", ",", ":", "1", "-", "true", "null", " ", "\n", "\r", "\u{0}", "é", "😀",
      "\u{2028}", "{}", "[]", "\"a\":",
    ]
    func bytes() -> [UInt8] {
      switch Int.random(in: 0..<3, using: &random) {
      case 0: (0..<Int.random(in: 0...8, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      case 1:
        Array(
          (0..<Int.random(in: 0...8, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined().utf8)
      default: Array(#"{"n":\#(Int.random(in: 0...9, using: &random)),"t":[\#(Bool.random(using: &random))]}"#.utf8)
      }
    }
    for _ in 0..<3_000 {
      let key =
        "k" + (0..<Int.random(in: 0...4, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined()
      let value: EntryValue =
        Bool.random(using: &random)
        ? .single(bytes()) : .list((0..<Int.random(in: 0...4, using: &random)).map { _ in bytes() })
      let expiry: Duration? =
        Bool.random(using: &random) ? .milliseconds(Int64.random(in: 1...1 << 52, using: &random)) : nil
      let entry = Entry(key: key, value: value, revision: .random(in: 1 ... .max, using: &random), expiresIn: expiry)
      #expect(try roundTrips(entry), "seed \(seed)")
    }
  }

  @Test func `an entry's line contains values up to the maximum depth`() throws {
    for depth in [511, 512, 513, 2_000] {
      let value = [UInt8](repeating: 0x5B, count: depth) + [UInt8](repeating: 0x5D, count: depth)
      let single = Entry(key: "a", value: .single(value), revision: 1)
      #expect(try parse(line(single)).value == single.value)
      let list = Entry(key: "a", value: .list([value]), revision: 1)
      #expect(try parse(line(list)).value == list.value)
      #expect(String(decoding: line(single), as: UTF8.self).contains(#""value":["#) == (depth <= 512))
    }
  }

  @Test func `an entry's line says in which form it has the value`() {
    func text(_ value: EntryValue) -> String {
      String(decoding: line(Entry(key: "k", value: value, revision: 3)), as: UTF8.self)
    }
    #expect(text(.single(Array("{}".utf8))) == #"{"key":"k","value":{},"revision":3}"# + "\n")
    #expect(text(.single(Array("{} ".utf8))) == #"{"key":"k","value":"{} ","revision":3}"# + "\n")
    #expect(text(.single(Array("1".utf8))) == #"{"key":"k","value":"1","revision":3}"# + "\n")
    #expect(text(.single([0x7B, 0xFF, 0x7D])) == #"{"key":"k","valueBase64":"e/99","revision":3}"# + "\n")
    #expect(text(.list([Array("[]".utf8), Array("a".utf8)])) == #"{"key":"k","values":[[],"a"],"revision":3}"# + "\n")
    #expect(
      text(.list([[0x80], Array("a".utf8)])) == #"{"key":"k","valuesBase64":["gA==","YQ=="],"revision":3}"# + "\n")
  }

  @Test func `Base64 in an entry's line is the standard one`() {
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
      var text: [UInt8] = []
      Base64.append(bytes.span, to: &text)
      #expect(String(decoding: text, as: UTF8.self) == Data(bytes).base64EncodedString())
      #expect(Base64.decode(text) == bytes)
    }
    for text in ["A", "AA", "AAA", "A===", "====", "AB==", "AAB=", "AA=A", "AAA\n", "AA A", "-_AA", "=AAA"] {
      #expect(Base64.decode(Array(text.utf8)) == nil, "\(text)")
    }
  }

  @Test func `an entry's line has durations in milliseconds`() throws {
    #expect(
      try ["500ms", "5s", "2m", "1h"].map { try DurationArgument($0).milliseconds } == [500, 5_000, 120_000, 3_600_000])
    for text in ["", "5", "s", "0s", "-1s", "1.5s", " 1s", "1 s", "1d", "9999999999999999h", "٣s"] {
      #expect(throws: (any Error).self, "\(text)") { try DurationArgument(text) }
    }
  }
}
