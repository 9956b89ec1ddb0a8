extension RegularExpression {
  /// The steps of a program that follows all its branches at once.
  ///
  /// A kernel is the set of instructions that consumption led to, with a bit for each instruction. Consuming a scalar
  /// is a few operations for each word of the kernel, because the next instruction is the next bit; branches are
  /// followed one by one, each at most once. So a step takes time linear in the program.
  ///
  /// Invariant: a kernel has at most 64 words, so that a set of its words is a word itself.
  struct Simulation: Sendable {
    /// The targets of a split, a jump or an assertion.
    private struct Branch {
      /// The condition of a branch that isn't an assertion.
      static let always: UInt16 = 1
      private static let none = UInt16.max

      /// The bits of the targets in the branch's own word, then of all that these lead to in the same word.
      var near: UInt64 = 0
      /// The bit of the assertion that must hold, or `always`.
      let condition: UInt16
      private var far = (none, none)

      init(at index: Int, to targets: Set<UInt16>, condition: UInt16 = always) {
        self.condition = condition
        for target in targets {
          if Int(target >> 6) == index >> 6 {
            near |= 1 << UInt64(target & 63)
          } else {
            far = (target, far.0)
          }
        }
      }

      /// Adds the targets in other words to a kernel, and the words of those that are new to the words to visit.
      @inline(__always)
      func addFarTargets(to words: inout MutableSpan<UInt64>, pending: inout UInt64) {
        guard far.0 != Self.none else { return }
        Self.add(far.0, to: &words, pending: &pending)
        if far.1 != Self.none { Self.add(far.1, to: &words, pending: &pending) }
      }

      @inline(__always)
      private static func add(_ target: UInt16, to words: inout MutableSpan<UInt64>, pending: inout UInt64) {
        let word = Int(target >> 6)
        let bit: UInt64 = 1 << UInt64(target & 63)
        if words[word] & bit == 0 {
          words[word] |= bit
          pending |= 1 << UInt64(word)
        }
      }
    }

    /// The number of words of a kernel.
    let wordCount: Int
    var instructionCount: Int { program.instructions.count }

    private let program: Program
    /// The targets of each instruction. They only matter for those that branch.
    private let branches: [Branch]
    /// The bits of the instructions that branch.
    private let branchMask: [UInt64]
    /// The bits of the instructions that consume a member of a class, one kernel after the other.
    private var consumerMasks: [UInt64] = []
    /// The positions in `consumerMasks`, by class, or -1 for classes that were not needed yet.
    private var maskPositions: [Int32] = []
    /// Scratch of `followBranches`.
    private var followed: [UInt64]

    init(_ program: Program) {
      self.program = program
      wordCount = (program.instructions.count + 63) / 64
      precondition(wordCount <= 64, "the limit of instructions is too large")
      followed = Array(repeating: 0, count: wordCount)
      var branchMask = followed
      var branches = program.instructions.enumerated().map { index, instruction in
        let branch: Branch
        switch instruction {
        case .split(let first, let second): branch = Branch(at: index, to: [first, second])
        case .jump(let target): branch = Branch(at: index, to: [target])
        case .assert(let assertion): branch = Branch(at: index, to: [UInt16(index + 1)], condition: 2 << assertion)
        case .consume, .match: return Branch(at: index, to: [], condition: 0)
        }
        branchMask[index >> 6] |= 1 << UInt64(index & 63)
        return branch
      }
      for index in branches.indices where branches[index].condition == Branch.always {
        let bit: UInt64 = 1 << UInt64(index & 63)
        let word = index & ~63
        for other in word..<min(word + 64, branches.count) where branches[other].near & bit != 0 {
          branches[other].near |= branches[index].near
        }
      }
      self.branches = branches
      self.branchMask = branchMask
    }

    /// Replaces a kernel with the one after a symbol.
    ///
    /// - Parameters:
    ///   - context: The context that precedes.
    ///   - symbol: What follows.
    ///   - symbolClass: The class of the symbol.
    /// - Returns: A Boolean value that indicates whether the program matches. Then the kernel is of no use.
    mutating func advance(
      _ kernel: inout [UInt64], after context: Context, over symbol: Alphabet.Symbol, of symbolClass: Int
    ) -> Bool {
      if !program.isAnchoredAtStart || context.contains(.textStart) { kernel[0] |= 1 }
      followBranches(&kernel, between: context, and: symbol.context)
      let last = program.instructions.count - 1
      if kernel[last >> 6] & (1 << UInt64(last & 63)) != 0 { return true }
      let position = maskPosition(of: symbol, symbolClass)
      let mask = consumerMasks.span
      var words = kernel.mutableSpan
      var carry: UInt64 = 0
      for word in 0..<wordCount {
        let consumed = words[word] & mask[position &+ word]
        words[word] = consumed << 1 | carry
        carry = consumed >> 63
      }
      return false
    }

    /// Adds the instructions that a kernel's branches lead to, until there are no new ones.
    private mutating func followBranches(_ kernel: inout [UInt64], between previous: Context, and next: Context) {
      var holding = Branch.always
      for (index, assertion) in program.assertions.enumerated() where assertion.holds(between: previous, and: next) {
        holding |= 2 << UInt16(index)
      }
      // Local copies, because a span of a property would keep the other properties from changing.
      let (branchArray, maskArray) = (branches, branchMask)
      let (branches, branchMask) = (branchArray.span, maskArray.span)
      var followed = followed.mutableSpan
      var words = kernel.mutableSpan
      // The words that may have branches to follow. A loop leads back to words that were visited before.
      var pending: UInt64 = 0
      for word in words.indices {
        followed[word] = 0
        if words[word] & branchMask[word] != 0 { pending |= 1 << UInt64(word) }
      }
      while pending != 0 {
        let word = pending.trailingZeroBitCount
        var fresh = words[word] & branchMask[word] & ~followed[word]
        if fresh == 0 {
          pending &= pending &- 1
          continue
        }
        followed[word] |= fresh
        // The branches of a word are independent of each other, so that the processor can overlap them.
        var reached: UInt64 = 0
        while fresh != 0 {
          let branch = branches[word << 6 | fresh.trailingZeroBitCount]
          fresh &= fresh &- 1
          if branch.condition & holding == 0 { continue }
          reached |= branch.near
          branch.addFarTargets(to: &words, pending: &pending)
        }
        words[word] |= reached
      }
    }

    /// Returns the position in `consumerMasks` of the mask of a class, which is computed if it isn't known.
    private mutating func maskPosition(of symbol: Alphabet.Symbol, _ symbolClass: Int) -> Int {
      while maskPositions.count <= symbolClass { maskPositions.append(-1) }
      if maskPositions[symbolClass] >= 0 { return Int(maskPositions[symbolClass]) }
      let position = consumerMasks.count
      maskPositions[symbolClass] = Int32(position)
      consumerMasks += repeatElement(0, count: wordCount)
      if let scalar = symbol.scalar {
        let memberships = program.sets.map { $0.contains(scalar) }
        for (index, instruction) in program.instructions.enumerated() {
          if case .consume(let set) = instruction, memberships[Int(set)] {
            consumerMasks[position + index >> 6] |= 1 << UInt64(index & 63)
          }
        }
      }
      return position
    }
  }
}
