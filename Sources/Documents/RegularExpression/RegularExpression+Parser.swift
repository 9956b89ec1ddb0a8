extension RegularExpression {
  /// A recursive-descent parser for patterns.
  ///
  /// It follows the parser of Python's `re` module step by step, because many corner cases depend on it.
  struct Parser {
    /// The inline flags in effect.
    private struct Flags: OptionSet {
      let rawValue: UInt8
      static let ignoringCase = Flags(rawValue: 1)
      static let multiline = Flags(rawValue: 2)
      static let dotMatchesNewline = Flags(rawValue: 4)
      static let verbose = Flags(rawValue: 8)
      static let ascii = Flags(rawValue: 16)
      static let unicode = Flags(rawValue: 32)
    }

    /// What the last item of a sequence is, which decides whether a quantifier may follow.
    private enum ItemKind { case atom, assertion, repetition }

    private typealias Token = PatternReader.Token

    private var reader: PatternReader
    private var depth = 0
    private var flags: Flags
    private var groupNames: Set<String> = []
    private var caseSets: [UInt32: Node] = [:]

    /// Returns the syntax tree of a pattern.
    static func parse(_ pattern: String, options: Options) throws(RegularExpressionError) -> Node {
      guard pattern.utf8.count <= Limit.patternSize else {
        throw RegularExpressionError(
          offset: 0, reason: "the pattern is larger than \(Limit.patternSize) bytes; use a shorter pattern")
      }
      var parser = try Parser(pattern, flags: options.contains(.ignoringCase) ? .ignoringCase : [])
      let node = try parser.parseAlternation(isTopLevel: true)
      guard parser.reader.next == nil else {
        throw parser.error("unmatched ')'; remove it or escape it as '\\)'", at: parser.reader.offset)
      }
      return node
    }

    private init(_ pattern: String, flags: Flags) throws(RegularExpressionError) {
      reader = try PatternReader(pattern)
      self.flags = flags
    }

    private func error(_ reason: String, at offset: Int) -> RegularExpressionError {
      RegularExpressionError(offset: offset, reason: reason)
    }

    // MARK: Sequences

    private mutating func parseAlternation(isTopLevel: Bool = false) throws(RegularExpressionError) -> Node {
      var branches = [try parseSequence(allowsGlobalFlags: isTopLevel)]
      while reader.take("|") { branches.append(try parseSequence(allowsGlobalFlags: false)) }
      return Node(alternating: branches)
    }

    private mutating func parseSequence(allowsGlobalFlags: Bool) throws(RegularExpressionError) -> Node {
      var items: [Node] = []
      var lastKind: ItemKind?
      while let token = reader.next, !token.is("|"), !token.is(")") {
        reader.advance()
        if token.isEscaped {
          let (node, kind) = try parseEscape(token)
          items.append(node)
          lastKind = kind
          continue
        }
        if flags.contains(.verbose) {
          if token.isSpace { continue }
          if token.scalar == "#" {
            while let token = reader.take(), !token.is("\n") {}
            continue
          }
        }
        switch token.scalar {
        case "*", "+", "?", "{":
          guard let (minimum, maximum) = try parseBounds(token) else {
            items.append(.scalar(token.scalar.value))
            lastKind = .atom
            continue
          }
          guard lastKind != .repetition else {
            throw error("a quantifier follows another one; group the inner repetition with '(?:...)'", at: token.offset)
          }
          guard lastKind == .atom else {
            throw error("the quantifier has nothing to repeat; escape it to match it literally", at: token.offset)
          }
          if reader.take("+") {
            throw error("possessive quantifiers are not supported; remove the second '+'", at: token.offset)
          }
          _ = reader.take("?")
          items.append(Node(repeating: items.removeLast(), minimum, maximum))
          lastKind = .repetition
        case "^":
          items.append(.assertion(flags.contains(.multiline) ? .lineStart : .textStart))
          lastKind = .assertion
        case "$":
          items.append(.assertion(flags.contains(.multiline) ? .lineEnd : .lastLineEnd))
          lastKind = .assertion
        case ".":
          let newline = CharacterSet.Item.range(10...10)
          items.append(.set(CharacterSet(flags.contains(.dotMatchesNewline) ? [] : [newline], negated: true)))
          lastKind = .atom
        case "[":
          items.append(try parseClass(start: token.offset))
          lastKind = .atom
        case "(":
          if let node = try parseGroup(start: token.offset, allowsGlobalFlags: allowsGlobalFlags && items.isEmpty) {
            items.append(node)
            lastKind = .atom
          }
        default:
          items.append(literal(token.scalar.value))
          lastKind = .atom
        }
      }
      return Node(concatenating: items)
    }

    /// Returns the bounds of a quantifier, or `nil` if a brace begins no quantifier and is thus a literal.
    private mutating func parseBounds(_ token: Token) throws(RegularExpressionError) -> (Int, Int?)? {
      switch token.scalar {
      case "*": return (0, nil)
      case "+": return (1, nil)
      case "?": return (0, 1)
      default: break
      }
      let start = reader
      if let next = reader.next, next.is("}") { return nil }
      let lower = reader.takeNumber()
      var upper = lower
      if reader.take(",") { upper = reader.takeNumber() }
      guard reader.take("}") else {
        reader = start
        return nil
      }
      for bound in [lower, upper] {
        if let bound, bound > Limit.repetitions {
          throw error(
            "the repetition count exceeds \(Limit.repetitions); use a smaller count or '*'", at: token.offset)
        }
      }
      if let upper, upper < lower ?? 0 {
        throw error("the minimum repetition count exceeds the maximum; swap them", at: token.offset)
      }
      return (lower ?? 0, upper)
    }

    private mutating func literal(_ scalar: UInt32) -> Node {
      guard flags.contains(.ignoringCase) else { return .scalar(scalar) }
      let others =
        flags.contains(.ascii)
        ? CaseFolding.asciiEquivalent(of: scalar).map { [$0] } ?? [] : CaseFolding.equivalents(of: scalar)
      if others.isEmpty { return .scalar(scalar) }
      let key = flags.contains(.ascii) ? scalar | 1 << 31 : scalar
      if let node = caseSets[key] { return node }
      let node = Node.set(CharacterSet((others + [scalar]).map { .range($0...$0) }))
      caseSets[key] = node
      return node
    }

    // MARK: Groups

    /// Parses what follows an opening parenthesis. Returns `nil` for comments and global flags.
    private mutating func parseGroup(start: Int, allowsGlobalFlags: Bool) throws(RegularExpressionError) -> Node? {
      let outerFlags = flags
      if reader.take("?") {
        guard let kind = reader.next else {
          throw error("the pattern ends inside a group; close the group with ')'", at: reader.offset)
        }
        guard !kind.isEscaped else { throw unknownExtension(start) }
        let beginsFlags = Self.isFlag(kind.scalar)
        if !beginsFlags { reader.advance() }
        switch kind.scalar {
        case ":": break
        case "P": try parseGroupName(start)
        case "#":
          while let token = reader.take() { if token.is(")") { return nil } }
          throw error("the comment is not closed; add ')'", at: start)
        case "=", "!": throw error("look-ahead is not supported; rewrite the pattern without it", at: start)
        case "<":
          guard let token = reader.next, token.is("=") || token.is("!") else { throw unknownExtension(start) }
          throw error("look-behind is not supported; rewrite the pattern without it", at: start)
        case ">": throw error("atomic groups are not supported; use '(?:...)'", at: start)
        case "(": throw error("conditional groups are not supported; rewrite the pattern without them", at: start)
        default:
          guard beginsFlags else { throw unknownExtension(start) }
          guard try parseFlags(start) else {
            guard allowsGlobalFlags else {
              throw error("global flags are only allowed at the start; move them or use '(?i:...)'", at: start)
            }
            return nil
          }
        }
      }
      depth += 1
      guard depth <= Limit.nesting else {
        throw error("groups are nested more than \(Limit.nesting) deep; use fewer groups", at: start)
      }
      let node = try parseAlternation()
      guard reader.take(")") else { throw error("the group is not closed; add ')' or escape it as '\\('", at: start) }
      depth -= 1
      flags = outerFlags
      return node
    }

    private func unknownExtension(_ start: Int) -> RegularExpressionError {
      error("unknown group syntax after '(?'; use '(?:...)' or escape the parenthesis", at: start)
    }

    private mutating func parseGroupName(_ start: Int) throws(RegularExpressionError) {
      if reader.take("=") { throw backreference(start) }
      guard reader.take("<") else { throw unknownExtension(start) }
      var name = String.UnicodeScalarView()
      let nameStart = reader.offset
      while true {
        guard let token = reader.take() else { throw error("the group name is not closed; add '>'", at: nameStart) }
        if token.is(">") { break }
        if token.isEscaped { name.append("\\") }
        name.append(token.scalar)
      }
      let isIdentifier = name.enumerated().allSatisfy { index, scalar in
        scalar == "_" || (index == 0 ? scalar.properties.isXIDStart : scalar.properties.isXIDContinue)
      }
      guard isIdentifier, !name.isEmpty else {
        throw error("the group name is not an identifier; use letters, digits and '_'", at: nameStart)
      }
      guard groupNames.insert(String(name)).inserted else {
        throw error("the group name is already in use; choose another name", at: nameStart)
      }
    }

    private func backreference(_ start: Int) -> RegularExpressionError {
      error("backreferences are not supported; rewrite the pattern without them", at: start)
    }

    /// Parses inline flags and applies them. Returns a Boolean value that indicates whether a group follows.
    private mutating func parseFlags(_ start: Int) throws(RegularExpressionError) -> Bool {
      let malformed = "the inline flags are malformed; write them as '(?i)', '(?i:...)' or '(?-i:...)'"
      let added = try parseFlagLetters(start)
      let alphabets = added.intersection([.ascii, .unicode])
      guard alphabets != [.ascii, .unicode] else {
        throw error("the flags 'a' and 'u' exclude each other; remove one", at: start)
      }
      if !added.isEmpty, reader.take(")") {
        let exclusive: Flags = added.contains(.ascii) ? .unicode : .ascii
        guard alphabets.isEmpty || flags.isDisjoint(with: exclusive) else {
          throw error("the flags 'a' and 'u' exclude each other; remove one", at: start)
        }
        flags.formUnion(added)
        return false
      }
      var removed: Flags = []
      if reader.take("-") {
        removed = try parseFlagLetters(start)
        guard !removed.isEmpty else { throw error(malformed, at: start) }
        guard removed.isDisjoint(with: [.ascii, .unicode]) else {
          throw error("the flags 'a' and 'u' cannot be turned off; remove them after '-'", at: start)
        }
      } else if added.isEmpty {
        throw unknownExtension(start)
      }
      guard reader.take(":") else { throw error(malformed, at: start) }
      guard added.isDisjoint(with: removed) else {
        throw error("a flag is both turned on and turned off; remove it on one side", at: start)
      }
      if !alphabets.isEmpty { flags.subtract([.ascii, .unicode]) }
      flags = flags.union(added).subtracting(removed)
      return true
    }

    /// Returns a Boolean value that indicates whether a scalar can begin inline flags.
    private static func isFlag(_ scalar: Unicode.Scalar) -> Bool { "imsxauLt-".unicodeScalars.contains(scalar) }

    private mutating func parseFlagLetters(_ start: Int) throws(RegularExpressionError) -> Flags {
      var result: Flags = []
      while let token = reader.next, !token.isEscaped {
        switch token.scalar {
        case "i": result.insert(.ignoringCase)
        case "m": result.insert(.multiline)
        case "s": result.insert(.dotMatchesNewline)
        case "x": result.insert(.verbose)
        case "a": result.insert(.ascii)
        case "u": result.insert(.unicode)
        case "L", "t": throw error("the flag '\(token.scalar)' is not supported; remove it", at: start)
        default: return result
        }
        reader.advance()
      }
      return result
    }

    // MARK: Escapes and classes

    private mutating func parseEscape(_ token: Token) throws(RegularExpressionError) -> (Node, ItemKind) {
      let isASCII = flags.contains(.ascii)
      switch token.scalar {
      case "A": return (.assertion(.textStart), .assertion)
      case "Z": return (.assertion(.textEnd), .assertion)
      case "b": return (.assertion(.wordBoundary(ascii: isASCII)), .assertion)
      case "B": return (.assertion(.notWordBoundary(ascii: isASCII)), .assertion)
      case "1"..."9":
        // Three octal digits are a code point; anything else is a backreference.
        var digits = reader
        guard token.scalar < "8", digits.takeDigit(radix: 8) != nil, digits.takeDigit(radix: 8) != nil else {
          throw backreference(token.offset)
        }
      default: break
      }
      switch try parseEscapedItem(token) {
      case .range(let range): return (literal(range.lowerBound), .atom)
      case let item: return (.set(CharacterSet([item])), .atom)
      }
    }

    /// Parses an escape that stands for one code point or for a category.
    private mutating func parseEscapedItem(_ token: Token) throws(RegularExpressionError) -> CharacterSet.Item {
      let isASCII = flags.contains(.ascii)
      func single(_ value: UInt32) -> CharacterSet.Item { .range(value...value) }
      switch token.scalar {
      case "d": return .category(.digit, ascii: isASCII, negated: false)
      case "D": return .category(.digit, ascii: isASCII, negated: true)
      case "s": return .category(.space, ascii: isASCII, negated: false)
      case "S": return .category(.space, ascii: isASCII, negated: true)
      case "w": return .category(.word, ascii: isASCII, negated: false)
      case "W": return .category(.word, ascii: isASCII, negated: true)
      case "a": return single(7)
      case "b": return single(8)
      case "t": return single(9)
      case "n": return single(10)
      case "v": return single(11)
      case "f": return single(12)
      case "r": return single(13)
      case "x": return single(try reader.takeHexadecimal(2, of: token))
      case "u": return single(try reader.takeHexadecimal(4, of: token))
      case "U": return single(try reader.takeHexadecimal(8, of: token))
      case "0"..."7":
        var value = token.scalar.value - 48
        for _ in 0..<2 {
          guard let digit = reader.takeDigit(radix: 8) else { break }
          value = value * 8 + digit
        }
        guard value <= 0o377 else {
          throw error("the octal escape exceeds \\377; use '\\uHHHH'", at: token.offset)
        }
        return single(value)
      case "N":
        throw error("named characters are not supported; use '\\uHHHH' or '\\UHHHHHHHH'", at: token.offset)
      case "8", "9", "a"..."z", "A"..."Z":
        throw error("unknown escape '\\\(token.scalar)'; remove the backslash or escape it", at: token.offset)
      default:
        return single(token.scalar.value)
      }
    }

    private mutating func parseClass(start: Int) throws(RegularExpressionError) -> Node {
      let isNegated = reader.take("^")
      var items: [CharacterSet.Item] = []
      while true {
        let token = try takeInClass(start)
        if token.is("]"), !items.isEmpty { break }
        let item = try parseClassItem(token)
        guard reader.take("-") else {
          items.append(item)
          continue
        }
        let last = try takeInClass(start)
        if last.is("]") {
          items += [item, .range(45...45)]
          break
        }
        guard case .range(let lower) = item, case .range(let upper) = try parseClassItem(last) else {
          throw error("a category cannot bound a range; escape the '-'", at: token.offset)
        }
        guard lower.lowerBound <= upper.lowerBound else {
          throw error("the range's bounds are reversed; swap them", at: token.offset)
        }
        items.append(.range(lower.lowerBound...upper.lowerBound))
      }
      if !isNegated, items.count == 1, case .range(let range) = items[0], range.count == 1 {
        return literal(range.lowerBound)
      }
      let caseRule: CharacterSet.CaseRule =
        !flags.contains(.ignoringCase) ? .exact : flags.contains(.ascii) ? .ignoringASCIICase : .ignoringCase
      return .set(CharacterSet(items, negated: isNegated, caseRule: caseRule))
    }

    /// Whether the rest of such a class follows a bracket: `:alpha:]`, `.hyphen.]` or `=e=]`. Python takes its characters
    /// for themselves, which nobody means.
    private var isPOSIXClass: Bool {
      var rest = reader
      guard let mark = rest.take(), !mark.isEscaped, [":", ".", "="].contains(mark.scalar) else { return false }
      while let token = rest.take(), !token.isEscaped, token.scalar != "]" {
        if token.scalar == mark.scalar { return rest.next?.is("]") == true }
      }
      return false
    }

    private mutating func takeInClass(_ start: Int) throws(RegularExpressionError) -> Token {
      guard let token = reader.take() else {
        throw error("the character class is not closed; add ']' or escape it as '\\['", at: start)
      }
      return token
    }

    private mutating func parseClassItem(_ token: Token) throws(RegularExpressionError) -> CharacterSet.Item {
      guard !token.is("[") || !isPOSIXClass else {
        throw error(
          "classes such as [:alpha:] are not supported; write \\w, \\d, \\s or ranges such as a-z, or escape the '['",
          at: token.offset)
      }
      return token.isEscaped ? try parseEscapedItem(token) : .range(token.scalar.value...token.scalar.value)
    }
  }
}
