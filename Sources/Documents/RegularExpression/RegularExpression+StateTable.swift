extension RegularExpression {
  /// The states and transitions that are known of a deterministic automaton.
  ///
  /// A state is a kernel, before assertions are evaluated, with the context that precedes it. When the table is full it
  /// is emptied, so memory stays bounded.
  ///
  /// Invariant: state 0 is the state at the start of the text. States are denoted by the position of their row in
  /// `transitions`.
  struct StateTable: Sendable {
    /// Values of `transitions` that aren't states.
    enum Transition {
      static let unknown: Int32 = -1
      static let match: Int32 = -2
      /// No continuation of the text matches.
      static let dead: Int32 = -3
    }

    private static let maximumTransitionCount = 1 << 18
    private static let maximumKernelSize = 1 << 17
    private static let maximumStateCount = 4_096
    private static let bucketCount = 256

    /// The target of each transition: a row for each state, with a column for each class.
    private(set) var transitions: [Int32] = []
    /// The number of transitions of a state.
    let columnCount: Int

    private let wordCount: Int
    private let stateLimit: Int
    private let startContext: Context
    private var kernels: [UInt64] = []
    private var contexts: [Context] = []
    private var hashes: [Int] = []
    private var nextInBucket: [Int32] = []
    private var buckets: [Int32]

    /// The number of states.
    var count: Int { hashes.count }

    /// Creates a table with the state at the start of the text.
    ///
    /// - Parameters:
    ///   - wordCount: The number of words of a kernel.
    ///   - startContext: The context at the start of the text.
    init(columnCount: Int, wordCount: Int, startContext: Context) {
      self.columnCount = columnCount
      self.wordCount = wordCount
      self.startContext = startContext
      stateLimit = min(
        Self.maximumStateCount, Self.maximumTransitionCount / columnCount, Self.maximumKernelSize / wordCount)
      buckets = Array(repeating: -1, count: Self.bucketCount)
      insertStartState()
    }

    /// Returns the context that precedes a state.
    func context(of state: Int) -> Context { contexts[state / columnCount] }

    /// Copies the kernel of a state to a buffer of its size.
    func copyKernel(of state: Int, to kernel: inout [UInt64]) {
      let start = state / columnCount * wordCount
      for word in 0..<wordCount { kernel[word] = kernels[start + word] }
    }

    /// Sets a transition.
    mutating func setTransition(from state: Int, over column: Int, to target: Int32) {
      transitions[state + column] = target
    }

    /// Returns the state with a kernel and a context, which is added if it is new, and whether the table was emptied.
    mutating func insert(_ kernel: [UInt64], _ context: Context) -> (state: Int32, didEmpty: Bool) {
      var hasher = Hasher()
      hasher.combine(context)
      for word in kernel { hasher.combine(word) }
      let hash = hasher.finalize()
      var candidate = Int(buckets[hash & (Self.bucketCount - 1)])
      while candidate >= 0 {
        if hashes[candidate] == hash, contexts[candidate] == context, hasKernel(candidate, kernel) {
          return (Int32(candidate * columnCount), false)
        }
        candidate = Int(nextInBucket[candidate])
      }
      let isFull = count >= stateLimit
      if isFull { removeAll() }
      return (append(kernel, context, hash: hash), isFull)
    }

    private func hasKernel(_ row: Int, _ kernel: [UInt64]) -> Bool {
      let start = row * wordCount
      for word in 0..<wordCount where kernels[start + word] != kernel[word] { return false }
      return true
    }

    private mutating func append(_ kernel: [UInt64], _ context: Context, hash: Int) -> Int32 {
      let row = count
      let bucket = hash & (Self.bucketCount - 1)
      kernels += kernel
      contexts.append(context)
      hashes.append(hash)
      nextInBucket.append(buckets[bucket])
      buckets[bucket] = Int32(row)
      transitions += repeatElement(Transition.unknown, count: columnCount)
      return Int32(row * columnCount)
    }

    /// Removes all states except for the one at the start of the text.
    private mutating func removeAll() {
      transitions.removeAll(keepingCapacity: true)
      kernels.removeAll(keepingCapacity: true)
      contexts.removeAll(keepingCapacity: true)
      hashes.removeAll(keepingCapacity: true)
      nextInBucket.removeAll(keepingCapacity: true)
      for bucket in buckets.indices { buckets[bucket] = -1 }
      insertStartState()
    }

    private mutating func insertStartState() {
      _ = insert(Array(repeating: 0, count: wordCount), startContext)
    }
  }
}
