extension RegularExpression {
  /// A search for a match that remembers the steps of a simulation as a deterministic automaton.
  ///
  /// A transition is computed when it is first needed, in time linear in the program, and kept in a table.
  struct Matcher: Sendable {
    private typealias Transition = StateTable.Transition

    /// The place where a scan paused.
    private struct Pause {
      let position: Int
      let state: Int
      let reason: Reason

      enum Reason {
        case end
        /// The scan reached the state that it was to pause at.
        case idle
        /// The transition over the scalar of this class and length isn't known, or decides the match.
        case transition(class: Int, length: Int)
        /// The class of this scalar isn't known.
        case scalar(UInt32, length: Int)
      }
    }

    /// The number of instructions that building the table in advance may visit.
    private static let warmUpBudget = 1 << 15
    /// The largest number of states that are computed in advance.
    private static let warmUpStateLimit = 128
    private static let scalarCacheSize = 256
    /// The largest text that is first matched with the table as it is.
    private static let shortTextSize = 1_024
    /// What computing a transition takes, apart from following instructions.
    private static let stepUnits = 16
    /// The largest number of bytes that are scanned at a time.
    private static let scanSize = 16 * 1_024
    /// The largest number of ASCII scalars that leave state 0 for which skipping the others pays.
    private static let maximumStartCount = 16

    private let isAnchoredAtStart: Bool
    private let prefix: LiteralSearcher?
    /// The contexts before a place that the program's assertions depend on.
    private let contextMask: Context
    /// For each byte, whether state 0 stays the same after it. Empty if state 0 depends on what precedes or
    /// if skipping wouldn't pay.
    private var skippable: [Bool] = []

    private var alphabet: Alphabet
    private var simulation: Simulation
    private var table: StateTable
    /// Scalars beyond ASCII with their classes, by the scalar's low bits: `scalar << 16 | class`.
    private var scalarCache: [UInt64] = []
    /// Scratch of `transition`.
    private var kernel: [UInt64]

    /// Creates a matcher and computes the most likely transitions.
    ///
    /// - Parameter prefix: A search for a literal that every match begins with.
    init(_ program: Program, prefix: LiteralSearcher?) {
      isAnchoredAtStart = program.isAnchoredAtStart
      contextMask = program.assertions.reduce(isAnchoredAtStart ? .textStart : []) { $0.union($1.precedingContexts) }
      self.prefix = contextMask.isEmpty ? prefix : nil
      alphabet = Alphabet(program)
      simulation = Simulation(program)
      table = StateTable(
        columnCount: alphabet.columnCount, wordCount: simulation.wordCount,
        startContext: contextMask.intersection(.textStart))
      kernel = Array(repeating: 0, count: simulation.wordCount)
      for scalar: UInt32 in [0xE9, 0x2013, 0x4E2D] { _ = alphabet.classify(scalar) }
      warmUp(costOfTransition: program.instructions.count)
      let stays = alphabet.asciiClasses.map { table.transitions[Int($0)] == 0 }
      if contextMask.isEmpty, stays.count(where: { !$0 }) <= Self.maximumStartCount {
        skippable = stays + Array(repeating: false, count: 128)
      }
    }

    /// Returns a Boolean value that indicates whether the program matches anywhere in a text.
    /// - Parameter budget: Once it is exhausted, the result means nothing.
    func matches(_ text: Span<UInt8>, _ budget: inout WorkBudget) -> Bool {
      if text.count <= Self.shortTextSize, let verdict = verdictFromTable(text) { return verdict }
      var copy = self
      // The table is copied when it is first extended.
      guard budget.spend(1 + table.transitions.count / 32) else { return false }
      return copy.run(text, &budget)
    }

    /// Returns the verdict if the transitions computed in advance suffice, which saves a copy of the table.
    private func verdictFromTable(_ text: Span<UInt8>) -> Bool? {
      var start = 0
      if let prefix {
        guard let found = prefix.firstOccurrence(in: text, from: 0) else { return false }
        start = found
      }
      let hasFinalNewline = text.count > 0 && text[text.count - 1] == 10
      let end = hasFinalNewline ? text.count - 1 : text.count
      let pause = scan(text, from: min(start, end), to: end, state: 0, idleState: -1)
      var target: Int32
      switch pause.reason {
      case .idle, .scalar: return nil
      case .transition(let symbolClass, _): target = table.transitions[pause.state + symbolClass]
      case .end:
        target = Int32(pause.state)
        if hasFinalNewline { target = table.transitions[Int(target) + Alphabet.finalNewline] }
        if target >= 0 { target = table.transitions[Int(target) + Alphabet.textEnd] }
      }
      return target == Transition.unknown ? nil : target == Transition.match
    }

    private mutating func run(_ text: Span<UInt8>, _ budget: inout WorkBudget) -> Bool {
      let hasFinalNewline = text.count > 0 && text[text.count - 1] == 10
      let end = hasFinalNewline ? text.count - 1 : text.count
      let idleState = prefix == nil && skippable.isEmpty ? -1 : 0
      var position = 0
      var state = 0
      while position < end {
        if state == idleState {
          if let prefix {
            guard let found = prefix.firstOccurrence(in: text, from: position) else { return false }
            position = found
          } else {
            while position < end, skippable[Int(text[position])] { position += 1 }
          }
          if position >= end { break }
        }
        let pause = scan(
          text, from: position, to: min(end, position + Self.scanSize), state: state, idleState: idleState)
        // What is skipped in the idle state takes a fraction of this.
        guard budget.spend(1 + (pause.position - position) / 8) else { return false }
        position = pause.position
        state = pause.state
        let target: Int32
        switch pause.reason {
        case .end, .idle: continue
        case .transition(let symbolClass, let length):
          target = transition(from: state, over: symbolClass, &budget)
          position += length
        case .scalar(let scalar, let length):
          let symbolClass = alphabet.classify(scalar)
          if symbolClass < table.columnCount { remember(scalar, symbolClass) }
          target = transition(from: state, over: symbolClass, &budget)
          position += length
        }
        if target == Transition.match { return true }
        if target == Transition.dead { return false }
        state = Int(target)
      }
      if hasFinalNewline {
        let target = transition(from: state, over: Alphabet.finalNewline, &budget)
        if target < 0 { return target == Transition.match }
        state = Int(target)
      }
      return transition(from: state, over: Alphabet.textEnd, &budget) == Transition.match
    }

    /// Follows known transitions until the end or until something isn't known.
    private func scan(
      _ text: Span<UInt8>, from start: Int, to end: Int, state startState: Int, idleState: Int
    ) -> Pause {
      let transitions = table.transitions.span
      let asciiClasses = alphabet.asciiClasses.span
      let scalarCache = scalarCache.span
      var position = start
      var state = startState
      while position < end {
        let byte = text[position]
        var length = 1
        let symbolClass: Int
        if byte < 0x80 {
          symbolClass = Int(asciiClasses[Int(byte)])
        } else {
          let scalar: UInt32
          (scalar, length) = Self.decode(text, at: position)
          let entry = scalarCache.isEmpty ? 0 : scalarCache[Int(scalar) & (Self.scalarCacheSize - 1)]
          guard entry >> 16 == UInt64(scalar) else {
            return Pause(position: position, state: state, reason: .scalar(scalar, length: length))
          }
          symbolClass = Int(entry & 0xFFFF)
        }
        let target = transitions[state &+ symbolClass]
        if target < 0 {
          return Pause(position: position, state: state, reason: .transition(class: symbolClass, length: length))
        }
        state = Int(target)
        position &+= length
        if state == idleState { return Pause(position: position, state: state, reason: .idle) }
      }
      return Pause(position: position, state: state, reason: .end)
    }

    /// Decodes the scalar at a position that isn't ASCII. Never reads past the end, even if the text is invalid.
    @inline(__always)
    private static func decode(_ text: Span<UInt8>, at position: Int) -> (scalar: UInt32, length: Int) {
      let lead = UInt32(text[position])
      let length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
      guard lead >= 0xC2, lead < 0xF5, position + length <= text.count else { return (0xFFFD, 1) }
      let second = UInt32(text[position + 1]) & 0x3F
      if length == 2 { return ((lead & 0x1F) << 6 | second, 2) }
      let third = UInt32(text[position + 2]) & 0x3F
      if length == 3 { return ((lead & 0x0F) << 12 | second << 6 | third, 3) }
      let fourth = UInt32(text[position + 3]) & 0x3F
      return ((lead & 0x07) << 18 | second << 12 | third << 6 | fourth, 4)
    }

    private mutating func remember(_ scalar: UInt32, _ symbolClass: Int) {
      if scalarCache.isEmpty { scalarCache = Array(repeating: 0, count: Self.scalarCacheSize) }
      scalarCache[Int(scalar) & (Self.scalarCacheSize - 1)] = UInt64(scalar) << 16 | UInt64(symbolClass)
    }

    // MARK: Transitions

    private mutating func warmUp(costOfTransition: Int) {
      var row = 0
      var cost = 0
      var budget = WorkBudget()
      while row < table.count, table.count <= Self.warmUpStateLimit {
        for symbolClass in 0..<min(alphabet.count, table.columnCount) {
          cost += costOfTransition
          if cost > Self.warmUpBudget { return }
          _ = transition(from: row * table.columnCount, over: symbolClass, &budget)
        }
        row += 1
      }
    }

    /// Returns the transition from a state, which is computed if it isn't known.
    private mutating func transition(from state: Int, over symbolClass: Int, _ budget: inout WorkBudget) -> Int32 {
      let hasColumn = symbolClass < table.columnCount
      if hasColumn, case let known = table.transitions[state + symbolClass], known != Transition.unknown {
        return known
      }
      budget.spend(Self.stepUnits + simulation.instructionCount / 16)
      let (target, didEmptyTable) = step(from: state, over: symbolClass)
      if hasColumn, !didEmptyTable { table.setTransition(from: state, over: symbolClass, to: target) }
      return target
    }

    /// Computes the state, or the verdict, after a symbol.
    private mutating func step(from state: Int, over symbolClass: Int) -> (target: Int32, didEmptyTable: Bool) {
      let symbol = alphabet.symbol(of: symbolClass)
      table.copyKernel(of: state, to: &kernel)
      if simulation.advance(&kernel, after: table.context(of: state), over: symbol, of: symbolClass) {
        return (Transition.match, false)
      }
      if symbol.scalar == nil || (isAnchoredAtStart && kernel.allSatisfy { $0 == 0 }) {
        return (Transition.dead, false)
      }
      let (target, didEmptyTable) = table.insert(kernel, symbol.context.intersection(contextMask))
      return (target, didEmptyTable)
    }
  }
}
