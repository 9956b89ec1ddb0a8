extension RegularExpression {
  /// The classes of scalars that a program treats alike, and the two symbols for the text's end.
  ///
  /// Class 0 is the end of the text and class 1 the newline that ends the text. The classes of ASCII are computed at
  /// once, those of other scalars when they are first seen. All scalars with the same traits, as far as the program's
  /// sets can tell them apart, have the same class, so the sets are only searched once for each combination of traits.
  struct Alphabet: Sendable {
    /// A representative of a class, which all its members behave like.
    struct Symbol: Sendable {
      /// The scalar, or `nil` for the end of the text.
      let scalar: CharacterSet.Candidate?
      let context: Context
    }

    /// The traits that distinguish two scalars beyond ASCII.
    private struct Traits: Hashable {
      /// The interval of the scalar, then those of its equivalents regardless of case.
      var intervals: SIMD4<UInt32>
      var categories: CharacterSet.Categories
    }

    static let textEnd = 0
    static let finalNewline = 1

    /// The class of each ASCII scalar.
    private(set) var asciiClasses: [UInt8] = []
    /// The number of classes that deserve a column in a table of transitions. There can be more classes.
    private(set) var columnCount = 0

    private var symbols: [Symbol]
    private let sets: [CharacterSet]
    private let usesWords: Bool
    private let usesCategories: Bool
    private let ignoresCase: Bool
    /// The sorted code points that begin an interval, in which no set's range begins or ends.
    private let intervalStarts: [UInt32]
    private var classesByTraits: [Traits: Int] = [:]
    private var classesBySignature: [[UInt64]: Int] = [:]

    /// The number of classes so far.
    var count: Int { symbols.count }

    init(_ program: Program) {
      sets = program.sets
      usesWords = program.assertions.contains { $0.dependsOnWords }
      usesCategories = usesWords || sets.contains { $0.usesCategories }
      ignoresCase = sets.contains { $0.ignoresCase }
      intervalStarts = Set(sets.flatMap { $0.boundaries }).sorted()
      symbols = [
        Symbol(scalar: nil, context: .textEnd),
        Symbol(scalar: CharacterSet.Candidate(10), context: [.newline, .finalNewline]),
      ]
      var classes: [[UInt64]: UInt8] = [:]
      for value in UInt32(0)..<128 {
        let scalar = CharacterSet.Candidate(value, ignoresCase: ignoresCase)
        let signature = signature(of: scalar)
        if let existing = classes[signature] {
          asciiClasses.append(existing)
        } else {
          let new = UInt8(symbols.count)
          classes[signature] = new
          asciiClasses.append(new)
          symbols.append(Symbol(scalar: scalar, context: context(of: scalar)))
        }
      }
      columnCount = symbols.count + min(sets.count + 3, 64)
    }

    /// Returns the representative of a class.
    func symbol(of index: Int) -> Symbol { symbols[index] }

    /// Returns the class of a scalar beyond ASCII.
    mutating func classify(_ value: UInt32) -> Int {
      let scalar = CharacterSet.Candidate(value, usesCategories: usesCategories, ignoresCase: ignoresCase)
      var traits = Traits(intervals: SIMD4(repeating: .max), categories: scalar.categories)
      traits.intervals[0] = interval(of: value)
      for (index, equivalent) in scalar.equivalents.enumerated() {
        traits.intervals[index + 1] = interval(of: equivalent)
      }
      if let known = classesByTraits[traits] { return known }
      let signature = signature(of: scalar)
      let new = classesBySignature[signature] ?? symbols.count
      if new == symbols.count {
        symbols.append(Symbol(scalar: scalar, context: context(of: scalar)))
        classesBySignature[signature] = new
      }
      classesByTraits[traits] = new
      return new
    }

    /// Returns the number of the interval that contains a code point.
    private func interval(of value: UInt32) -> UInt32 {
      var start = 0
      var end = intervalStarts.count
      while start < end {
        let middle = (start + end) / 2
        if intervalStarts[middle] <= value { start = middle + 1 } else { end = middle }
      }
      return UInt32(start)
    }

    private func context(of scalar: CharacterSet.Candidate) -> Context {
      var context: Context = []
      if scalar.value == 10 { context.insert(.newline) }
      if usesWords, scalar.categories.contains(.word) {
        context.insert(.word)
        if scalar.value < 128 { context.insert(.asciiWord) }
      }
      return context
    }

    /// Returns the bits that determine a scalar's class: its memberships, then newline and word.
    private func signature(of scalar: CharacterSet.Candidate) -> [UInt64] {
      var signature = [UInt64](repeating: 0, count: (sets.count + 2 + 63) / 64)
      for index in sets.indices where sets[index].contains(scalar) {
        signature[index >> 6] |= 1 << UInt64(index & 63)
      }
      let newline = sets.count
      let word = newline + 1
      if scalar.value == 10 { signature[newline >> 6] |= 1 << UInt64(newline & 63) }
      if usesWords, scalar.categories.contains(.word) { signature[word >> 6] |= 1 << UInt64(word & 63) }
      return signature
    }
  }
}
