extension RegularExpression {
  /// A simulation of a program on a text that remembers its steps as a deterministic automaton.
  ///
  /// A state is the set of instructions that may consume the next scalar, before assertions are evaluated,
  /// with the context that precedes it. A transition is computed when it is first needed, in time linear in
  /// the program, and kept in a table. When the table is full it is emptied, so memory stays bounded.
  ///
  /// Invariant: state 0 is the state at the start of the text. States are denoted by the position of their
  /// row in `transitions`.
  struct Matcher: Sendable {
    /// Values of the transition table that are no state.
    private enum Transition {
      static let unknown: Int32 = -1
      static let match: Int32 = -2
      /// No continuation of the text matches.
      static let dead: Int32 = -3
    }

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

    private static let maximumTransitionCount = 1 << 18
    private static let maximumKernelSize = 1 << 17
    private static let maximumStateCount = 4_096
    /// The number of instructions that building the table in advance may visit.
    private static let warmUpBudget = 1 << 15
    private static let bucketCount = 256
    private static let scalarCacheSize = 256
    /// The largest text that is first matched with the table as it is.
    private static let shortTextSize = 1_024
    /// The largest number of ASCII scalars that leave state 0 for which skipping the others pays.
    private static let maximumStartCount = 16

    private let program: Program
    private let prefix: LiteralSearcher?
    /// The contexts before a place that the program's assertions depend on.
    private let contextMask: Context
    private let stride: Int
    private let wordsPerKernel: Int
    private let stateLimit: Int
    /// For each byte, whether state 0 stays the same after it. Empty if state 0 depends on what precedes or
    /// if skipping wouldn't pay.
    private var skippable: [Bool] = []

    private var alphabet: Alphabet
    private var transitions: [Int32] = []
    private var kernels: [UInt64] = []
    private var contexts: [Context] = []
    private var hashes: [Int] = []
    private var nextInBucket: [Int32] = []
    private var buckets: [Int32]
    /// Scalars beyond ASCII with their classes, by the scalar's low bits: `scalar << 16 | class`.
    private var scalarCache: [UInt64] = []

    // Scratch of `step`.
    private var kernel: [UInt64]
    private var visited: [UInt64]
    private var pending: [UInt16] = []

    /// Creates a matcher and computes the most likely transitions.
    ///
    /// - Parameter prefix: A search for a literal that every match begins with.
    init(_ program: Program, prefix: LiteralSearcher?) {
      self.program = program
      var mask: Context = program.isAnchoredAtStart ? .textStart : []
      for assertion in program.assertions {
        switch assertion {
        case .textStart: mask.insert(.textStart)
        case .lineStart: mask.formUnion([.textStart, .newline])
        case .wordBoundary(let ascii): mask.insert(ascii ? .asciiWord : .word)
        case .notWordBoundary(let ascii): mask.formUnion([.textStart, ascii ? .asciiWord : .word])
        case .textEnd, .lastLineEnd, .lineEnd: break
        }
      }
      contextMask = mask
      self.prefix = mask.isEmpty ? prefix : nil
      alphabet = Alphabet(program)
      stride = alphabet.capacity
      wordsPerKernel = (program.instructions.count + 63) / 64
      stateLimit = min(
        Self.maximumStateCount, Self.maximumTransitionCount / stride, Self.maximumKernelSize / wordsPerKernel)
      buckets = Array(repeating: -1, count: Self.bucketCount)
      kernel = Array(repeating: 0, count: wordsPerKernel)
      visited = kernel
      insertStartState()
      for scalar: UInt32 in [0xE9, 0x2013, 0x4E2D] { _ = alphabet.classify(scalar) }
      warmUp()
      let stays = alphabet.asciiClasses.map { transitions[Int($0)] == 0 }
      if mask.isEmpty, stays.count(where: { !$0 }) <= Self.maximumStartCount {
        skippable = stays + Array(repeating: false, count: 128)
      }
    }

    /// Returns a Boolean value that indicates whether the program matches anywhere in a text.
    func matches(_ text: Span<UInt8>) -> Bool {
      if text.count <= Self.shortTextSize, let verdict = verdictFromTable(text) { return verdict }
      var copy = self
      return copy.run(text)
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
      case .transition(let symbolClass, _): target = transitions[pause.state + symbolClass]
      case .end:
        target = Int32(pause.state)
        if hasFinalNewline { target = transitions[Int(target) + Alphabet.finalNewline] }
        if target >= 0 { target = transitions[Int(target) + Alphabet.textEnd] }
      }
      return target == Transition.unknown ? nil : target == Transition.match
    }

    private mutating func run(_ text: Span<UInt8>) -> Bool {
      let hasFinalNewline = text.count > 0 && text[text.count - 1] == 10
      let end = hasFinalNewline ? text.count - 1 : text.count
      let idleState = prefix == nil && skippable.isEmpty ? -1 : 0
      var position = 0
      var state = 0
      scanning: while position < end {
        if state == idleState {
          if let prefix {
            guard let found = prefix.firstOccurrence(in: text, from: position) else { return false }
            position = found
          } else {
            while position < end, skippable[Int(text[position])] { position += 1 }
          }
          if position >= end { break }
        }
        let pause = scan(text, from: position, to: end, state: state, idleState: idleState)
        position = pause.position
        state = pause.state
        let target: Int32
        switch pause.reason {
        case .end: break scanning
        case .idle: continue
        case .transition(let symbolClass, let length):
          target = transition(from: state, over: symbolClass)
          position += length
        case .scalar(let scalar, let length):
          if let symbolClass = alphabet.classify(scalar) {
            remember(scalar, symbolClass)
            target = transition(from: state, over: symbolClass)
          } else {
            target = step(from: state, over: alphabet.symbol(for: scalar)).target
          }
          position += length
        }
        if target == Transition.match { return true }
        if target == Transition.dead { return false }
        state = Int(target)
      }
      if hasFinalNewline {
        let target = transition(from: state, over: Alphabet.finalNewline)
        if target < 0 { return target == Transition.match }
        state = Int(target)
      }
      return transition(from: state, over: Alphabet.textEnd) == Transition.match
    }

    /// Follows known transitions until the end or until something isn't known.
    private func scan(
      _ text: Span<UInt8>, from start: Int, to end: Int, state startState: Int, idleState: Int
    ) -> Pause {
      let transitions = transitions.span
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

    // MARK: The table

    private mutating func warmUp() {
      var row = 0
      var cost = 0
      while row < hashes.count {
        for symbolClass in 0..<alphabet.count {
          cost += program.instructions.count
          if cost > Self.warmUpBudget { return }
          _ = transition(from: row * stride, over: symbolClass)
        }
        row += 1
      }
    }

    /// Returns the transition from a state, which is computed if it isn't known.
    private mutating func transition(from state: Int, over symbolClass: Int) -> Int32 {
      let known = transitions[state + symbolClass]
      if known != Transition.unknown { return known }
      let (target, didEmptyTable) = step(from: state, over: alphabet.symbol(of: symbolClass))
      if !didEmptyTable { transitions[state + symbolClass] = target }
      return target
    }

    /// Computes the state, or the verdict, after a symbol.
    private mutating func step(
      from state: Int, over symbol: Alphabet.Symbol
    ) -> (target: Int32, didEmptyTable: Bool) {
      let row = state / stride
      let previous = contexts[row]
      pending.removeAll(keepingCapacity: true)
      for word in 0..<wordsPerKernel {
        visited[word] = 0
        kernel[word] = 0
        var bits = kernels[row * wordsPerKernel + word]
        while bits != 0 {
          pending.append(UInt16(word * 64 + bits.trailingZeroBitCount))
          bits &= bits - 1
        }
      }
      if !program.isAnchoredAtStart || previous.contains(.textStart) { pending.append(0) }
      var isEmpty = true
      while let counter = pending.popLast() {
        let word = Int(counter >> 6)
        let bit: UInt64 = 1 << UInt64(counter & 63)
        if visited[word] & bit != 0 { continue }
        visited[word] |= bit
        switch program.instructions[Int(counter)] {
        case .match: return (Transition.match, false)
        case .jump(let target): pending.append(target)
        case .split(let first, let second):
          pending.append(second)
          pending.append(first)
        case .assert(let assertion):
          if assertion.holds(between: previous, and: symbol.context) { pending.append(counter + 1) }
        case .consume(let set):
          guard let scalar = symbol.scalar, program.sets[Int(set)].contains(scalar) else { continue }
          let next = counter + 1
          kernel[Int(next >> 6)] |= 1 << UInt64(next & 63)
          isEmpty = false
        }
      }
      if symbol.scalar == nil || (isEmpty && program.isAnchoredAtStart) { return (Transition.dead, false) }
      return insertState(symbol.context.intersection(contextMask))
    }

    /// Returns the state with the instructions in `kernel`, which is added if it is new.
    private mutating func insertState(_ context: Context) -> (target: Int32, didEmptyTable: Bool) {
      var hasher = Hasher()
      hasher.combine(context)
      for word in kernel { hasher.combine(word) }
      let hash = hasher.finalize()
      let bucket = hash & (Self.bucketCount - 1)
      var candidate = Int(buckets[bucket])
      while candidate >= 0 {
        if hashes[candidate] == hash, contexts[candidate] == context, hasKernel(candidate) {
          return (Int32(candidate * stride), false)
        }
        candidate = Int(nextInBucket[candidate])
      }
      var didEmptyTable = false
      if hashes.count >= stateLimit {
        emptyTable()
        didEmptyTable = true
      }
      return (appendState(context, hash: hash), didEmptyTable)
    }

    private func hasKernel(_ row: Int) -> Bool {
      let start = row * wordsPerKernel
      for word in 0..<wordsPerKernel where kernels[start + word] != kernel[word] { return false }
      return true
    }

    private mutating func appendState(_ context: Context, hash: Int) -> Int32 {
      let row = hashes.count
      let bucket = hash & (Self.bucketCount - 1)
      kernels += kernel
      contexts.append(context)
      hashes.append(hash)
      nextInBucket.append(buckets[bucket])
      buckets[bucket] = Int32(row)
      transitions += repeatElement(Transition.unknown, count: stride)
      return Int32(row * stride)
    }

    /// Removes all states except for the one at the start of the text.
    private mutating func emptyTable() {
      transitions.removeAll(keepingCapacity: true)
      kernels.removeAll(keepingCapacity: true)
      contexts.removeAll(keepingCapacity: true)
      hashes.removeAll(keepingCapacity: true)
      nextInBucket.removeAll(keepingCapacity: true)
      for bucket in buckets.indices { buckets[bucket] = -1 }
      let saved = kernel
      for word in kernel.indices { kernel[word] = 0 }
      insertStartState()
      kernel = saved
    }

    private mutating func insertStartState() {
      _ = insertState(contextMask.intersection(.textStart))
    }
  }
}

extension RegularExpression.Assertion {
  /// Returns a Boolean value that indicates whether the assertion holds between two contexts.
  fileprivate func holds(between previous: RegularExpression.Context, and next: RegularExpression.Context) -> Bool {
    switch self {
    case .textStart: previous.contains(.textStart)
    case .lineStart: !previous.isDisjoint(with: [.textStart, .newline])
    case .textEnd: next.contains(.textEnd)
    case .lastLineEnd: !next.isDisjoint(with: [.textEnd, .finalNewline])
    case .lineEnd: !next.isDisjoint(with: [.textEnd, .newline])
    case .wordBoundary(let ascii):
      previous.contains(ascii ? .asciiWord : .word) != next.contains(ascii ? .asciiWord : .word)
    case .notWordBoundary(let ascii):
      previous.contains(ascii ? .asciiWord : .word) == next.contains(ascii ? .asciiWord : .word)
        && !(previous.contains(.textStart) && next.contains(.textEnd))
    }
  }
}
