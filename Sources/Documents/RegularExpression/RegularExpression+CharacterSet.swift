extension RegularExpression {
  /// A set of code points: ranges and categories, optionally negated or matched regardless of case.
  ///
  /// Invariant: `ranges` is sorted and its ranges don't touch; the two words hold the set's ASCII members.
  struct CharacterSet: Hashable, Sendable {
    /// The meanings of the category escapes `\d`, `\s` and `\w`.
    struct Categories: OptionSet, Hashable, Sendable {
      let rawValue: UInt8
      static let digit = Categories(rawValue: 1)
      static let space = Categories(rawValue: 2)
      static let word = Categories(rawValue: 4)
    }

    /// One part of a character class.
    enum Item: Hashable, Sendable {
      case range(ClosedRange<UInt32>)
      /// The members of a category, or all code points outside of it.
      case category(Categories, ascii: Bool, negated: Bool)
    }

    /// The way a set treats the case of letters.
    enum CaseRule: Hashable, Sendable {
      case exact, ignoringASCIICase, ignoringCase
    }

    /// A code point with the traits that sets test.
    struct Candidate: Sendable {
      let value: UInt32
      /// The categories that contain the code point.
      let categories: Categories
      /// The other code points that match this one regardless of case.
      let equivalents: [UInt32]

      /// Creates a candidate. What no set depends on is left out.
      init(_ value: UInt32, usesCategories: Bool = true, ignoresCase: Bool = false) {
        self.value = value
        categories = usesCategories ? Categories.containing(value) : []
        equivalents = ignoresCase ? CaseFolding.equivalents(of: value) : []
      }

      /// The categories that contain the code point if these are limited to ASCII.
      var asciiCategories: Categories {
        value >= 128 ? [] : (28...31).contains(value) ? categories.subtracting(.space) : categories
      }
    }

    private let ranges: [ClosedRange<UInt32>]
    private let isNegated: Bool
    private let caseRule: CaseRule
    private var included: Categories = []
    private var includedASCII: Categories = []
    /// The categories of which all code points outside are members.
    private var excluded: Categories = []
    private var excludedASCII: Categories = []
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    init(_ items: [Item], negated: Bool = false, caseRule: CaseRule = .exact) {
      var unsorted: [ClosedRange<UInt32>] = []
      for item in items {
        switch item {
        case .range(let range): unsorted.append(range)
        case .category(let category, ascii: false, negated: false): included.formUnion(category)
        case .category(let category, ascii: true, negated: false): includedASCII.formUnion(category)
        case .category(let category, ascii: false, negated: true): excluded.formUnion(category)
        case .category(let category, ascii: true, negated: true): excludedASCII.formUnion(category)
        }
      }
      ranges = Self.merged(unsorted)
      isNegated = negated
      self.caseRule = caseRule
      for value in UInt32(0)..<128 where computeMembership(of: Candidate(value, ignoresCase: ignoresCase)) {
        if value < 64 { low |= 1 << UInt64(value) } else { high |= 1 << UInt64(value - 64) }
      }
    }

    /// Creates the set of one code point.
    init(_ value: UInt32) {
      ranges = [value...value]
      isNegated = false
      caseRule = .exact
      if value < 64 { low = 1 << UInt64(value) } else if value < 128 { high = 1 << UInt64(value - 64) }
    }

    /// Hashes a part of bounded size, because a repeated set is hashed for each copy. Equality is fast for copies.
    func hash(into hasher: inout Hasher) {
      hasher.combine(low)
      hasher.combine(high)
      hasher.combine(ranges.count)
      hasher.combine(ranges.first)
      hasher.combine(ranges.last)
    }

    /// A Boolean value that indicates whether the set depends on the categories of code points beyond ASCII.
    var usesCategories: Bool { included != [] || excluded != [] }

    /// A Boolean value that indicates whether the set depends on the case of code points beyond ASCII.
    var ignoresCase: Bool { caseRule == .ignoringCase }

    /// The code points that begin or follow one of the set's ranges.
    var boundaries: [UInt32] { ranges.flatMap { [$0.lowerBound, $0.upperBound + 1] } }

    /// Returns a Boolean value that indicates whether the set contains a code point.
    func contains(_ candidate: Candidate) -> Bool {
      let value = candidate.value
      if value < 64 { return low & (1 << UInt64(value)) != 0 }
      if value < 128 { return high & (1 << UInt64(value - 64)) != 0 }
      return computeMembership(of: candidate)
    }

    private func computeMembership(of candidate: Candidate) -> Bool {
      let isMember =
        isInRanges(candidate.value)
        || !included.isDisjoint(with: candidate.categories)
        || !includedASCII.isDisjoint(with: candidate.asciiCategories)
        || !excluded.isSubset(of: candidate.categories)
        || !excludedASCII.isSubset(of: candidate.asciiCategories)
        || hasEquivalentInRanges(candidate)
      return isMember != isNegated
    }

    private func hasEquivalentInRanges(_ candidate: Candidate) -> Bool {
      switch caseRule {
      case .exact: false
      case .ignoringASCIICase: CaseFolding.asciiEquivalent(of: candidate.value).map { isInRanges($0) } ?? false
      case .ignoringCase: candidate.equivalents.contains { isInRanges($0) }
      }
    }

    private func isInRanges(_ value: UInt32) -> Bool {
      var start = 0
      var end = ranges.count
      while start < end {
        let middle = (start + end) / 2
        if ranges[middle].upperBound < value { start = middle + 1 } else { end = middle }
      }
      return start < ranges.count && ranges[start].lowerBound <= value
    }

    private static func merged(_ ranges: [ClosedRange<UInt32>]) -> [ClosedRange<UInt32>] {
      var result: [ClosedRange<UInt32>] = []
      for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
        if let last = result.last, range.lowerBound <= last.upperBound + 1 {
          result[result.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
        } else {
          result.append(range)
        }
      }
      return result
    }
  }
}

extension RegularExpression.CharacterSet.Categories {
  /// Returns the categories that contain a code point, as in Python 3.11.
  fileprivate static func containing(_ value: UInt32) -> Self {
    if value < 128 {
      return switch value {
      case 48...57: [.digit, .word]
      case 65...90, 95, 97...122: .word
      case 9...13, 28...32: .space
      default: []
      }
    }
    guard let properties = Unicode.Scalar(value)?.properties else { return [] }
    return switch properties.generalCategory {
    case .decimalNumber: [.digit, .word]
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter: .word
    case .spaceSeparator, .lineSeparator, .paragraphSeparator: .space
    default: value == 0x85 ? .space : properties.numericType != nil ? .word : []
    }
  }
}
