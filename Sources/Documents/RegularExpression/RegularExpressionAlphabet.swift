extension RegularExpression {
  /// What a scalar, or the end of the text, means to the assertions beside it.
  struct Context: OptionSet, Hashable, Sendable {
    let rawValue: UInt8
    /// Nothing precedes.
    static let textStart = Context(rawValue: 1)
    /// Nothing follows.
    static let textEnd = Context(rawValue: 2)
    static let newline = Context(rawValue: 4)
    /// The newline that ends the text.
    static let finalNewline = Context(rawValue: 8)
    static let word = Context(rawValue: 16)
    static let asciiWord = Context(rawValue: 32)
  }

  /// The classes of scalars that a program treats alike, and the two symbols for the text's end.
  ///
  /// Class 0 is the end of the text and class 1 the newline that ends the text. The classes of ASCII are
  /// computed at once; those of other scalars are added when they are first seen, up to `capacity`.
  struct Alphabet: Sendable {
    /// A representative of a class, which all its members behave like.
    struct Symbol: Sendable {
      /// The scalar, or `nil` for the end of the text.
      let scalar: UInt32?
      let context: Context
    }

    static let textEnd = 0
    static let finalNewline = 1

    /// The class of each ASCII scalar.
    private(set) var asciiClasses: [UInt8] = []
    /// The largest number of classes.
    let capacity: Int

    private var symbols: [Symbol]
    private let sets: [CharacterSet]
    private let usesWords: Bool
    private let firstNonASCIIClass: Int
    /// The signatures of the classes beyond ASCII, one after the other.
    private var signatures: [UInt64] = []
    private var signature: [UInt64]

    /// The number of classes so far.
    var count: Int { symbols.count }

    init(_ program: Program) {
      sets = program.sets
      usesWords = program.assertions.contains {
        switch $0 {
        case .wordBoundary, .notWordBoundary: true
        default: false
        }
      }
      // Two bits follow the memberships: newline, word.
      signature = Array(repeating: 0, count: (sets.count + 2 + 63) / 64)
      symbols = [
        Symbol(scalar: nil, context: .textEnd), Symbol(scalar: 10, context: [.newline, .finalNewline]),
      ]
      var classes: [[UInt64]: UInt8] = [:]
      for scalar in UInt32(0)..<128 {
        Self.writeSignature(of: scalar, sets: sets, usesWords: usesWords, to: &signature)
        if let existing = classes[signature] {
          asciiClasses.append(existing)
        } else {
          let new = UInt8(symbols.count)
          classes[signature] = new
          asciiClasses.append(new)
          symbols.append(Self.symbol(for: scalar, usesWords: usesWords))
        }
      }
      firstNonASCIIClass = symbols.count
      capacity = symbols.count + min(sets.count + 3, 64)
    }

    /// Returns the representative of a class.
    func symbol(of index: Int) -> Symbol { symbols[index] }

    /// Returns the symbol for a scalar itself.
    func symbol(for scalar: UInt32) -> Symbol { Self.symbol(for: scalar, usesWords: usesWords) }

    /// Returns the class of a scalar beyond ASCII, or `nil` if it would be one class too many.
    mutating func classify(_ scalar: UInt32) -> Int? {
      Self.writeSignature(of: scalar, sets: sets, usesWords: usesWords, to: &signature)
      let size = signature.count
      var candidate = firstNonASCIIClass
      while candidate < symbols.count {
        let start = (candidate - firstNonASCIIClass) * size
        var isEqual = true
        for index in 0..<size where signatures[start + index] != signature[index] {
          isEqual = false
          break
        }
        if isEqual { return candidate }
        candidate += 1
      }
      guard symbols.count < capacity else { return nil }
      signatures += signature
      symbols.append(symbol(for: scalar))
      return candidate
    }

    private static func symbol(for scalar: UInt32, usesWords: Bool) -> Symbol {
      var context: Context = []
      if scalar == 10 { context.insert(.newline) }
      if usesWords {
        if CharacterSet.isMember(scalar, of: .word, ascii: false) { context.insert(.word) }
        if CharacterSet.isMember(scalar, of: .word, ascii: true) { context.insert(.asciiWord) }
      }
      return Symbol(scalar: scalar, context: context)
    }

    /// Writes the bits that tell a scalar's class.
    private static func writeSignature(
      of scalar: UInt32, sets: [CharacterSet], usesWords: Bool, to storage: inout [UInt64]
    ) {
      for index in storage.indices { storage[index] = 0 }
      for index in sets.indices where sets[index].contains(scalar) {
        storage[index >> 6] |= 1 << UInt64(index & 63)
      }
      let newline = sets.count
      let word = newline + 1
      if scalar == 10 { storage[newline >> 6] |= 1 << UInt64(newline & 63) }
      if usesWords, CharacterSet.isMember(scalar, of: .word, ascii: false) {
        storage[word >> 6] |= 1 << UInt64(word & 63)
      }
    }
  }
}
