extension RegularExpression {
  /// A set of code points: ranges and categories, optionally negated or matched regardless of case.
  ///
  /// Invariant: `ranges` is sorted and its ranges don't touch; the two words hold the set's ASCII members.
  struct CharacterSet: Hashable, Sendable {
    /// The meaning of a category escape such as `\d`.
    enum Category: Hashable, Sendable {
      case digit, space, word
    }

    /// One part of a character class.
    enum Item: Hashable, Sendable {
      case range(ClosedRange<UInt32>)
      /// The members of a category, or all code points outside of it.
      case category(Category, ascii: Bool, negated: Bool)
    }

    /// The way a set treats the case of letters.
    enum CaseRule: Hashable, Sendable {
      case exact, ignoringASCIICase, ignoringCase
    }

    private struct CategoryItem: Hashable, Sendable {
      let category: Category
      let ascii: Bool
      let negated: Bool
    }

    private let ranges: [ClosedRange<UInt32>]
    private let categories: [CategoryItem]
    private let isNegated: Bool
    private let caseRule: CaseRule
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    init(_ items: [Item], negated: Bool = false, caseRule: CaseRule = .exact) {
      var unsorted: [ClosedRange<UInt32>] = []
      var categories: [CategoryItem] = []
      for item in items {
        switch item {
        case .range(let range):
          unsorted.append(range)
        case .category(let category, let ascii, let negated):
          let item = CategoryItem(category: category, ascii: ascii, negated: negated)
          if !categories.contains(item) { categories.append(item) }
        }
      }
      self.ranges = Self.merged(unsorted)
      self.categories = categories
      self.isNegated = negated
      self.caseRule = caseRule
      for scalar in UInt32(0)..<128 where computeMembership(of: scalar) {
        if scalar < 64 { low |= 1 << UInt64(scalar) } else { high |= 1 << UInt64(scalar - 64) }
      }
    }

    /// Creates the set of one code point.
    init(_ scalar: UInt32) {
      ranges = [scalar...scalar]
      categories = []
      isNegated = false
      caseRule = .exact
      if scalar < 64 { low = 1 << UInt64(scalar) } else if scalar < 128 { high = 1 << UInt64(scalar - 64) }
    }

    /// Returns a Boolean value that indicates whether the set contains a code point.
    func contains(_ scalar: UInt32) -> Bool {
      if scalar < 64 { return low & (1 << UInt64(scalar)) != 0 }
      if scalar < 128 { return high & (1 << UInt64(scalar - 64)) != 0 }
      return computeMembership(of: scalar)
    }

    private func computeMembership(of scalar: UInt32) -> Bool {
      var isMember = isInRanges(scalar)
      if !isMember {
        isMember = categories.contains {
          $0.negated != Self.isMember(scalar, of: $0.category, ascii: $0.ascii)
        }
      }
      if !isMember {
        switch caseRule {
        case .exact: break
        case .ignoringASCIICase:
          if let other = CaseFolding.asciiEquivalent(of: scalar) { isMember = isInRanges(other) }
        case .ignoringCase:
          isMember = CaseFolding.equivalents(of: scalar).contains { isInRanges($0) }
        }
      }
      return isMember != isNegated
    }

    private func isInRanges(_ scalar: UInt32) -> Bool {
      var start = 0
      var end = ranges.count
      while start < end {
        let middle = (start + end) / 2
        if ranges[middle].upperBound < scalar { start = middle + 1 } else { end = middle }
      }
      return start < ranges.count && ranges[start].lowerBound <= scalar
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

    /// Returns a Boolean value that indicates whether a code point belongs to a category.
    static func isMember(_ scalar: UInt32, of category: Category, ascii: Bool) -> Bool {
      if scalar < 128 {
        switch category {
        case .digit: return (48...57).contains(scalar)
        case .space: return (9...13).contains(scalar) || scalar == 32 || (!ascii && (28...31).contains(scalar))
        case .word:
          return (97...122).contains(scalar) || (65...90).contains(scalar) || (48...57).contains(scalar)
            || scalar == 95
        }
      }
      guard !ascii, let properties = Unicode.Scalar(scalar)?.properties else { return false }
      switch category {
      case .digit:
        return properties.generalCategory == .decimalNumber
      case .space:
        return properties.generalCategory == .spaceSeparator || scalar == 0x85 || scalar == 0x2028
          || scalar == 0x2029
      case .word:
        switch properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter: return true
        default: return properties.numericType != nil
        }
      }
    }
  }

  /// The code points that match each other regardless of case.
  ///
  /// Two code points are equivalent if their simple lowercase mappings are the same, or if these differ but
  /// have the same uppercase mapping. The latter are the groups of Python's `re` module.
  enum CaseFolding {
    /// Returns the other code points that match a code point regardless of case.
    static func equivalents(of scalar: UInt32) -> [UInt32] { table[scalar] ?? [] }

    /// Returns the same ASCII letter in the other case.
    static func asciiEquivalent(of scalar: UInt32) -> UInt32? {
      (65...90).contains(scalar) || (97...122).contains(scalar) ? scalar ^ 32 : nil
    }

    /// Lowercase code points that have the same uppercase mapping.
    private static let groups: [[UInt32]] = [
      [0x69, 0x131], [0x73, 0x17F], [0xB5, 0x3BC], [0x345, 0x3B9, 0x1FBE], [0x390, 0x1FD3], [0x3B0, 0x1FE3],
      [0x3B2, 0x3D0], [0x3B5, 0x3F5], [0x3B8, 0x3D1], [0x3BA, 0x3F0], [0x3C0, 0x3D6], [0x3C1, 0x3F1],
      [0x3C2, 0x3C3], [0x3C6, 0x3D5], [0x432, 0x1C80], [0x434, 0x1C81], [0x43E, 0x1C82], [0x441, 0x1C83],
      [0x442, 0x1C84, 0x1C85], [0x44A, 0x1C86], [0x463, 0x1C87], [0x1C88, 0xA64B], [0x1E61, 0x1E9B],
      [0xFB05, 0xFB06],
    ]

    /// The largest code point that is searched for case mappings. All cased letters are in planes 0 and 1.
    private static let lastScalar: UInt32 = 0x1FFFF

    private static let table: [UInt32: [UInt32]] = {
      var members: [UInt32: [UInt32]] = [:]
      var representatives: [UInt32: UInt32] = [:]
      for group in groups {
        for lowercase in group { representatives[lowercase] = group[0] }
        members[group[0]] = group
      }
      for value in 0...lastScalar {
        guard let scalar = Unicode.Scalar(value), scalar.properties.changesWhenLowercased,
          let lowercase = scalar.properties.lowercaseMapping.unicodeScalars.first?.value
        else { continue }
        let representative = representatives[lowercase] ?? lowercase
        members[representative, default: [representative]].append(value)
      }
      var table: [UInt32: [UInt32]] = [:]
      for group in members.values {
        for member in group { table[member] = group.filter { $0 != member } }
      }
      return table
    }()
  }
}
