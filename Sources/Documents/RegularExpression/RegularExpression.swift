/// A regular expression that is matched in time linear in the text, whatever the pattern.
///
/// An expression searches a text for a match anywhere, as `re.search` of Python 3.11 does for `str`. Syntax and meaning
/// are Python's, by Unicode scalars:
///
/// | Syntax | Meaning |
/// |---|---|
/// | `abc`, `.` | scalars; any scalar except for a newline |
/// | `[a-z]`, `[^a-z]` | scalars in a class, or outside of it |
/// | `\d`, `\s`, `\w`, `\D`, `\S`, `\W` | Unicode's digits, spaces and word characters, and all others; also in classes |
/// | `\a \f \n \r \t \v`, `\x41`, `\u0041`, `\U00000041`, `\101`, `\0` | a scalar |
/// | `^`, `$`, `\A`, `\Z`, `\b`, `\B` | start, end (or before the final newline), start, end, word boundary, none |
/// | `a\|b`, `(a)`, `(?:a)`, `(?P<name>a)`, `(?#comment)` | alternatives, groups, which capture nothing, a comment |
/// | `a*`, `a+`, `a?`, `a{2}`, `a{2,}`, `a{,3}`, `a{2,3}` | repetitions; a `?` that follows changes nothing |
/// | `(?i)` at the start, `(?i:a)`, `(?-i:a)` | flags for the pattern or a group, on or off |
///
/// The flags: `i` ignores case, with `m` `^` and `$` match at every line, with `s` `.` matches newlines, `x` allows
/// spaces and comments, and `a` and `u` choose ASCII or Unicode for `\d`, `\s`, `\w`, `\b` and case.
///
/// Not supported: backreferences (`\1`, `(?P=name)`), look-ahead and look-behind (`(?=a)`, `(?<!a)`), conditional and
/// atomic groups, possessive quantifiers, named characters (`\N{...}`) and the flag `L`. The error for these says so
/// and gives the offset.
///
/// These limits bound the time and memory of every expression. The error for a pattern that exceeds one names it.
///
/// | What | At most |
/// |---|---|
/// | the pattern | 32 KiB of UTF-8 |
/// | nested groups | 50 |
/// | the count of a repetition | 1,000 |
/// | instructions: a scalar, class or branch, for each of its repetitions | 4,000 |
/// | branches: an assertion, `?`, or `+`; two for `*` and for each alternative after the first | 400 |
///
/// Measured with release builds on one core: the worst patterns that are known compile in 50 ms and need 2 s for 1 MiB
/// of text; typical patterns compile in 0.1 ms and need 1 to 5 ms. An expression takes less than 1 MB of memory, and a
/// running match some more megabytes.
///
/// A pattern is parsed into a `Node` and compiled into a `Program`. A `Matcher` runs a `Simulation` of the program and
/// remembers its steps in a `StateTable`.
///
/// Invariant: a value never changes after its initializer returns, so it can be shared between threads. A call of
/// `matches` that extends the matcher's table does so in a copy of its own.
public struct RegularExpression: Sendable, Equatable {
  /// Settings that apply to the whole pattern. The pattern's inline flags can override them.
  public struct Options: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Letters match regardless of case, as with the inline flag `(?i)`.
    public static let ignoringCase = Options(rawValue: 1)
  }

  /// Limits that bound the time and memory of compiling and matching.
  enum Limit {
    /// The largest pattern, in UTF-8 bytes.
    static let patternSize = 32 * 1024
    /// The deepest nesting of groups.
    static let nesting = 50
    /// The largest number of instructions of a compiled pattern, which bounds the time of a step. At most 4,096.
    static let instructions = 4_000
    /// The largest number of instructions that branch. They are what costs most in a step.
    static let branches = 400
    /// The largest bound of a counted repetition.
    static let repetitions = 1_000
    /// The longest literal used to skip text, in UTF-8 bytes. It bounds the work for each candidate.
    static let literalSize = 32
  }

  /// The way to decide a match without the matcher, where there is one.
  private enum Shortcut: Sendable {
    /// No shortcut applies.
    case none
    /// The text matches if, and only if, it contains the literal.
    case contains(LiteralSearcher)
    /// The text matches if, and only if, it starts with the prefix.
    case startsWithPrefix
    /// The text can only match if it contains the literal.
    case requires(LiteralSearcher)
  }

  /// What a pattern compiles to. It is shared, so that copies of an expression are cheap.
  private final class Compiled: Sendable {
    /// The UTF-8 of the literal that a match begins with at the start of the text.
    let prefix: [UInt8]
    let shortcut: Shortcut
    let matcher: Matcher
    let instructionCount: Int

    init(prefix: [UInt8], shortcut: Shortcut, matcher: Matcher, instructionCount: Int) {
      self.instructionCount = instructionCount
      self.prefix = prefix
      self.shortcut = shortcut
      self.matcher = matcher
    }
  }

  /// The pattern as it was given.
  package let pattern: String
  private let options: Options
  private let compiled: Compiled

  /// The number of instructions that the pattern compiles to, which the time of compiling it depends on.
  var instructionCount: Int { compiled.instructionCount }

  /// The literal prefix that every match begins with if the pattern is anchored at the start (`^abc`).
  ///
  /// The prefix is `nil` if the pattern is not anchored or does not begin with a literal.
  /// Compare it with a text by UTF-8 bytes, not by canonical equivalence.
  public let anchoredLiteralPrefix: String?

  /// Creates a regular expression from a pattern.
  ///
  /// - Throws: `RegularExpressionError` if the pattern is malformed, is not supported, or exceeds a limit.
  /// - Complexity: O(*m* · log *m*), where *m* is the length of the pattern with its repetitions expanded.
  public init(_ pattern: String, options: Options = []) throws(RegularExpressionError) {
    let node = try Parser.parse(pattern, options: options)
    let program = try Program(node)
    let outline = node.outline()
    let bytes = Array(String(String.UnicodeScalarView(outline.prefix)).utf8)
    let isAnchored = program.isAnchoredAtStart

    var searcher: LiteralSearcher?
    var shortcut = Shortcut.none
    if isAnchored {
      if outline.isExact { shortcut = .startsWithPrefix }
    } else if !bytes.isEmpty {
      let prefix = LiteralSearcher(outline.prefix, maximumSize: Limit.literalSize)
      searcher = prefix
      if outline.isExact && bytes.count <= Limit.literalSize { shortcut = .contains(prefix) }
    } else {
      let required = node.requiredLiteral()
      if !required.isEmpty {
        shortcut = .requires(LiteralSearcher(required, maximumSize: Limit.literalSize))
      }
    }

    self.pattern = pattern
    self.options = options
    self.compiled = Compiled(
      prefix: isAnchored ? bytes : [], shortcut: shortcut, matcher: Matcher(program, prefix: searcher),
      instructionCount: program.instructions.count)
    self.anchoredLiteralPrefix = isAnchored && !bytes.isEmpty ? String(decoding: bytes, as: UTF8.self) : nil
  }

  /// Returns a Boolean value that indicates whether the expression matches anywhere in a text.
  ///
  /// - Parameter text: Valid UTF-8. Of other bytes, the result is unspecified.
  /// - Complexity: O(*n* · *m*), where *n* is the length of the text and *m* that of the compiled pattern,
  ///   and usually O(*n*).
  public func matches(_ text: Span<UInt8>) -> Bool {
    var budget = WorkBudget()
    return matches(text, &budget)
  }

  /// Returns whether the expression matches anywhere in a text.
  /// - Parameter budget: Once it is exhausted, the result means nothing.
  func matches(_ text: Span<UInt8>, _ budget: inout WorkBudget) -> Bool {
    guard compiled.prefix.isEmpty || startsWithPrefix(text) else { return false }
    switch compiled.shortcut {
    case .none: break
    case .startsWithPrefix: return true
    case .contains(let literal): return literal.firstOccurrence(in: text, from: 0) != nil
    case .requires(let literal): if literal.firstOccurrence(in: text, from: 0) == nil { return false }
    }
    return compiled.matcher.matches(text, &budget)
  }

  /// Returns a Boolean value that indicates whether the expression matches anywhere in a text.
  public func matches(_ text: String) -> Bool {
    matches(text.utf8.span)
  }

  private func startsWithPrefix(_ text: Span<UInt8>) -> Bool {
    let prefix = compiled.prefix
    guard text.count >= prefix.count else { return false }
    for index in prefix.indices where text[index] != prefix[index] { return false }
    return true
  }

  /// Expressions are equal if their patterns have the same scalars and their options are the same.
  public static func == (left: RegularExpression, right: RegularExpression) -> Bool {
    left.options == right.options && left.pattern.unicodeScalars.elementsEqual(right.pattern.unicodeScalars)
  }
}

/// The error thrown for a pattern that is malformed, is not supported, or exceeds a limit.
public struct RegularExpressionError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The position of the error, in Unicode scalars of the pattern. It is 0 if a limit concerns the pattern as a whole.
  public let offset: Int
  /// What is wrong with the pattern, then what to do.
  public let reason: String

  init(offset: Int, reason: String) {
    self.offset = offset
    self.reason = reason
  }

  /// The offset and the reason.
  public var description: String { "invalid regular expression at offset \(offset): \(reason)" }
}
