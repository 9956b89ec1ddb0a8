extension RegularExpression {
  /// A pattern compiled into instructions of a nondeterministic automaton.
  ///
  /// Execution starts at instruction 0. Invariant: every target and set index is in bounds, the last instruction is
  /// `match`, there are at most `Limit.instructions` instructions, and at most `Limit.branches` of them branch.
  struct Program: Sendable {
    enum Instruction: Sendable {
      /// Consumes a member of the set with this index, then continues with the next instruction.
      case consume(UInt16)
      /// Continues at both targets.
      case split(UInt16, UInt16)
      case jump(UInt16)
      /// Continues with the next instruction if the assertion with this index holds.
      case assert(UInt16)
      case match
    }

    private(set) var instructions: [Instruction] = []
    private(set) var sets: [CharacterSet] = []
    /// The distinct assertions of the program.
    private(set) var assertions: [Assertion] = []
    /// A Boolean value that indicates whether every match begins at the start of the text.
    let isAnchoredAtStart: Bool

    private var branchCount = 0
    private var setIndices: [CharacterSet: UInt16] = [:]

    /// Compiles a syntax tree.
    ///
    /// - Throws: `RegularExpressionError` if the program exceeds `Limit.instructions` or `Limit.branches`.
    init(_ node: Node) throws(RegularExpressionError) {
      isAnchoredAtStart = node.isAnchoredAtStart
      try compile(node)
      try emit(.match)
      setIndices = [:]
    }

    private var end: UInt16 { UInt16(instructions.count) }

    private mutating func emit(_ instruction: Instruction) throws(RegularExpressionError) {
      guard instructions.count < Limit.instructions else {
        throw RegularExpressionError(
          offset: 0,
          reason: "the pattern expands to more than \(Limit.instructions) instructions; use smaller repetition counts")
      }
      instructions.append(instruction)
    }

    /// Appends a split, a jump or an assertion, and returns its position.
    @discardableResult
    private mutating func emit(branch instruction: Instruction) throws(RegularExpressionError) -> Int {
      branchCount += 1
      guard branchCount <= Limit.branches else {
        throw RegularExpressionError(
          offset: 0,
          reason: "the pattern expands to more than \(Limit.branches) branches; use fewer alternatives and repetitions")
      }
      try emit(instruction)
      return instructions.count - 1
    }

    private mutating func emit(consuming set: CharacterSet) throws(RegularExpressionError) {
      if let index = setIndices[set] { return try emit(.consume(index)) }
      let index = UInt16(sets.count)
      try emit(.consume(index))
      sets.append(set)
      setIndices[set] = index
    }

    private mutating func emit(asserting assertion: Assertion) throws(RegularExpressionError) {
      let known = assertions.firstIndex(of: assertion)
      if known == nil { assertions.append(assertion) }
      try emit(branch: .assert(UInt16(known ?? assertions.count - 1)))
    }

    private mutating func compile(_ node: Node) throws(RegularExpressionError) {
      switch node {
      case .scalar(let scalar): try emit(consuming: CharacterSet(scalar))
      case .set(let set): try emit(consuming: set)
      case .assertion(let assertion): try emit(asserting: assertion)
      case .concatenation(let nodes): for node in nodes { try compile(node) }
      case .alternation(let nodes): try compile(alternation: nodes)
      case .repetition(let node, let minimum, let maximum): try compile(node, minimum: minimum, maximum: maximum)
      }
    }

    private mutating func compile(alternation nodes: [Node]) throws(RegularExpressionError) {
      var jumps: [Int] = []
      for node in nodes.dropLast() {
        let split = try emit(branch: .split(0, 0))
        try compile(node)
        jumps.append(try emit(branch: .jump(0)))
        instructions[split] = .split(UInt16(split + 1), end)
      }
      if let last = nodes.last { try compile(last) }
      for jump in jumps { instructions[jump] = .jump(end) }
    }

    private mutating func compile(
      _ node: Node, minimum: Int, maximum: Int?
    ) throws(RegularExpressionError) {
      var start = end
      for _ in 0..<minimum {
        start = end
        try compile(node)
      }
      guard let maximum else {
        if minimum > 0 {
          try emit(branch: .split(start, end + 1))
        } else {
          let split = try emit(branch: .split(0, 0))
          try compile(node)
          try emit(branch: .jump(UInt16(split)))
          instructions[split] = .split(UInt16(split + 1), end)
        }
        return
      }
      var splits: [Int] = []
      for _ in minimum..<maximum {
        splits.append(try emit(branch: .split(0, 0)))
        try compile(node)
      }
      for split in splits { instructions[split] = .split(UInt16(split + 1), end) }
    }
  }
}
