extension RegularExpression {
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
