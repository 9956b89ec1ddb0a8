import Documents
import Foundation
import TestSupport
import Testing

/// Compares expressions with those of Python's module `re`. The tests are skipped if there is no `python3`.
@Suite(.enabled(if: Python.isInstalled)) struct `Regular expressions and Python` {
  /// Reads lines of a pattern and texts in hexadecimal UTF-8 and writes, for each, `E` for an error, `T` for too
  /// slow, or a digit for each text.
  private static let script = #"""
    import re, signal, sys, warnings
    warnings.simplefilter("ignore")
    class Slow(Exception): pass
    def alarm(*_): raise Slow
    signal.signal(signal.SIGALRM, alarm)
    output = open(sys.argv[2], "w")
    for line in open(sys.argv[1]):
        pattern, *texts = [bytes.fromhex(field).decode() for field in line.rstrip("\n").split(",")]
        try:
            expression = re.compile(pattern)
        except (re.error, OverflowError, ValueError):
            output.write("E\n")
            continue
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            output.write("".join("01"[expression.search(text) is not None] for text in texts) + "\n")
        except Slow:
            output.write("T\n")
        signal.setitimer(signal.ITIMER_REAL, 0)
    """#

  /// The number of patterns for each seed. For a thorough run, set `LARDER_SEEDS` to the number of seeds.
  private static let patternCount = 1_000

  @Test func `random regular expressions match what they match in Python`() throws {
    for seed in SeededGenerator.seeds(1) { try compare(seed: seed) }
  }

  private func compare(seed: UInt64) throws {
    var generator = PatternGenerator(seed: seed)
    let cases = (0..<Self.patternCount).map { _ in
      (pattern: generator.pattern(), texts: (0..<4).map { _ in generator.text() })
    }
    let lines = cases.map { ([$0.pattern] + $0.texts).map(hexadecimal).joined(separator: ",") }
    let verdicts = try Python.run(Self.script, input: lines.joined(separator: "\n") + "\n")
    try #require(verdicts.count == cases.count)

    for (verdict, (pattern, texts)) in zip(verdicts, cases) {
      let actual: String
      switch Result(catching: { () throws(RegularExpressionError) in try RegularExpression(pattern) }) {
      case .success where verdict == "T": continue
      case .success(let expression): actual = texts.map { expression.matches($0) ? "1" : "0" }.joined()
      case .failure(let error) where error.reason.contains("not supported") || error.reason.contains("exceeds"):
        continue
      case .failure: actual = "E"
      }
      if actual != verdict {
        Issue.record("LARDER_SEED=\(seed): \(pattern.debugDescription) on \(texts): \(actual) instead of \(verdict)")
      }
    }
  }

  /// Writes, for each assigned scalar, which of `\d`, `\w` and `\s` it matches; then, for each cased scalar, the
  /// scalars it matches regardless of case.
  private static let scalarScript = #"""
    import re, sys, unicodedata
    output = open(sys.argv[2], "w")
    cased = []
    for value in range(0x110000):
        scalar = chr(value)
        if unicodedata.category(scalar) in ("Cn", "Co", "Cs"): continue
        if 0x3400 < value < 0x9FFF or 0xAC00 < value < 0xD7A3 or 0x17000 < value < 0x18CFF or 0x20000 < value:
            continue
        if scalar.lower() != scalar or scalar.upper() != scalar: cased.append(scalar)
        bits = "".join("01"[re.match(escape, scalar) is not None] for escape in (r"\d", r"\w", r"\s"))
        output.write(f"{value:x} {bits}\n")
    everything = "".join(cased)
    for scalar in cased:
        matches = re.findall("(?i)" + scalar, everything)
        output.write(f"{ord(scalar):x} = " + " ".join(f"{ord(match):x}" for match in matches) + "\n")
    """#

  @Test func `every scalar has the same categories as in Python`() throws {
    var textsByCategories: [Substring: String] = [:]
    for fields in try scalarLines() where fields[1] != "=" {
      textsByCategories[fields[1], default: ""].unicodeScalars.append(try scalar(fields[0]))
    }
    #expect(textsByCategories.count == 4)
    for (bits, text) in textsByCategories {
      for (bit, category) in zip(bits, ["d", "w", "s"]) {
        let pattern = "\\A\\" + (bit == "1" ? category : category.uppercased()) + "+\\Z"
        #expect(try RegularExpression(pattern).matches(text), "\(bits)")
      }
    }
  }

  @Test func `every scalar has the same case as in Python`() throws {
    let folds = try scalarLines().filter { $0[1] == "=" }.map { fields in
      (scalar: try scalar(fields[0]), matches: try fields.dropFirst(2).map(scalar))
    }
    #expect(folds.count > 2_000)
    for (index, (scalar, matches)) in folds.enumerated() where SeededGenerator.isThorough || index % 40 == 0 {
      let expression = try RegularExpression(String(scalar), options: .ignoringCase)
      for match in matches { #expect(expression.matches(String(match)), "\(scalar) \(match)") }
      var others = String.UnicodeScalarView()
      others.append(contentsOf: folds.map(\.scalar).filter { !matches.contains($0) })
      #expect(!expression.matches(String(others)), "\(scalar)")
    }
  }

  private func scalarLines() throws -> [[Substring]] {
    try Python.run(Self.scalarScript).map { $0.split(separator: " ") }
  }

  private func scalar(_ field: Substring) throws -> Unicode.Scalar {
    try #require(UInt32(field, radix: 16).flatMap { Unicode.Scalar($0) })
  }

  private func hexadecimal(_ text: String) -> String {
    text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// Python 3, as a subprocess.
private enum Python {
  static let isInstalled = (try? run("import sys; open(sys.argv[2], 'w').write('1')")) == ["1"]

  /// Runs a script with the paths of an input and an output file as its arguments. Returns the lines of its output.
  static func run(_ script: String, input: String = "") throws -> [Substring] {
    let folder = try TemporaryFolder()
    try folder.put("input", Array(input.utf8))
    try folder.put("output", [])
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", script, folder.file("input"), folder.file("output")]
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    return String(decoding: try folder.contents("output"), as: UTF8.self).split(separator: "\n")
  }
}

/// A generator of random patterns, most of which are well-formed, and of texts that often match.
private struct PatternGenerator {
  private var random: SeededGenerator

  private static let letters = Array(
    "aaabbcABkKsSiI1_ -\n\u{E9}\u{C9}\u{DF}\u{1E9E}\u{17F}\u{212A}\u{131}\u{130}\u{3C3}\u{3C2}\u{3A3}\u{B5}\u{3BC}\u{4E2D}\u{1F600}\u{660}\u{B2}\u{345}\u{10400}\u{10428}\u{A0}"
      .unicodeScalars)
  /// The letters of patterns. Python 3.11 doesn't fold the case of an uppercase letter beyond the Basic Multilingual
  /// Plane in a class, nor in an alternation of classes.
  private static let patternLetters = letters.filter { $0 != "\u{10400}" }
  private static let escapes = [
    #"\d"#, #"\D"#, #"\w"#, #"\W"#, #"\s"#, #"\S"#, #"\b"#, #"\B"#, #"\A"#, #"\Z"#, #"\t"#, #"\n"#, #"\x61"#,
    #"\u0062"#,
    #"\U00000063"#, #"\0"#, #"\141"#, #"\."#, #"\*"#, #"\("#, #"\q"#, #"\1"#, #"\-"#, #"\ "#, #"\x"#, #"\07"#, #"\é"#,
  ]
  private static let quantifiers = [
    "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{,2}", "{1,2}", "{0}", "{0,3}?", "{", "{,}", "{2,1}", "{a}", "{1",
    "++",
  ]
  private static let openings = [
    "(", "(?:", "(?i:", "(?-i:", "(?s:", "(?m:", "(?x:", "(?im-s:", "(?a:", "(?u:", "(?P<n>", "(?P<m>", "(?P<é>",
  ]
  private static let flags = [
    "(?i)", "(?m)", "(?s)", "(?x)", "(?im)", "(?a)", "(?u)", "(?ai)", "(?isx)", "(?#c)", "(?au)",
  ]
  private static let noise = Array(#"()[]{}|*+?^$.\-,:=!<>#Pimsxau09b"#.unicodeScalars)

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  private mutating func pick<T>(_ values: [T]) -> T { values.randomElement(using: &random)! }

  mutating func text() -> String {
    var text = String.UnicodeScalarView()
    let letters = chance(60) ? Array(Self.letters.prefix(18)) : Self.letters
    for _ in 0..<Int.random(in: 0...8, using: &random) { text.append(pick(letters)) }
    return String(text)
  }

  mutating func pattern() -> String {
    var pattern = chance(25) ? pick(Self.flags) : ""
    if chance(5) { pattern += pick(Self.flags) }
    pattern += alternation(depth: 0)
    if chance(4) {
      var scalars = Array(pattern.unicodeScalars)
      scalars.insert(pick(Self.noise), at: Int.random(in: 0...scalars.count, using: &random))
      var view = String.UnicodeScalarView()
      view.append(contentsOf: scalars)
      pattern = String(view)
    }
    return pattern
  }

  private mutating func alternation(depth: Int) -> String {
    var result = sequence(depth: depth)
    while chance(25) { result += "|" + sequence(depth: depth) }
    return result
  }

  private mutating func sequence(depth: Int) -> String {
    var result = ""
    for _ in 0..<Int.random(in: chance(10) ? 0...1 : 1...4, using: &random) {
      result += atom(depth: depth)
      if chance(30) { result += pick(chance(80) ? Array(Self.quantifiers.prefix(12)) : Self.quantifiers) }
    }
    return result
  }

  private mutating func atom(depth: Int) -> String {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<45: return String(pick(Self.patternLetters))
    case 45..<52: return "."
    case 52..<57: return "^"
    case 57..<62: return "$"
    case 62..<74: return pick(Self.escapes)
    case 74..<88: return characterClass()
    case 88..<90: return "#"
    default: return depth < 4 ? pick(Self.openings) + alternation(depth: depth + 1) + ")" : "a"
    }
  }

  private mutating func characterClass() -> String {
    var result = chance(30) ? "[^" : "["
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<55: result += String(pick(Self.patternLetters))
      case 55..<70:
        let bounds = [pick(Self.patternLetters), pick(Self.patternLetters)].sorted()
        result += "\(bounds[chance(97) ? 0 : 1])-\(bounds[1])"
      case 70..<90: result += pick(Self.escapes)
      case 90..<95: result += pick(["]", "-", "^", "&", "[", ".", "$"])
      default: result += pick([#"\x41-Z"#, "a-", #"\d-a"#, "+-9"])
      }
    }
    return result + "]"
  }
}
