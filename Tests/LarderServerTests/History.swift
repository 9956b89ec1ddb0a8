/// The calls of several clients, with the times when they began and ended, and whether they are linearizable: whether
/// each can have taken place at one instant between its beginning and its end.
///
/// The search is that of Wing and Gong, 1993, with the memory of Lowe, 2017: it tries every order of overlapping calls,
/// and no state twice.
struct History {
  /// One of the operations of an apply.
  enum Step: Equatable {
    case put(String, Int)
    case delete(String)
    case increment(String, Int)
    case check(String, revision: UInt64)
    case checkAbsent(String)
  }

  enum Operation: Equatable {
    case get(String)
    case put(String, Int)
    case apply([Step])
  }

  /// What a client was told.
  enum Outcome: Hashable {
    case absent
    case entry(Int, revision: UInt64)
    case written(revision: UInt64)
    /// The condition of a step does not hold; the number counts from 1.
    case conditionFailed(Int)
    /// There is nothing to increment.
    case notFound(Int)
    /// Nothing was written, because of other clients.
    case outpaced
  }

  struct Call {
    let start: UInt64
    let end: UInt64
    let operation: Operation
    let outcome: Outcome
  }

  /// What a store has.
  struct State: Hashable {
    struct Entry: Hashable {
      let number: Int
      let revision: UInt64
    }

    var revision: UInt64
    var entries: [String: Entry] = [:]

    /// Executes an operation by the words of the protocol, and returns the outcome.
    mutating func execute(_ operation: Operation) -> Outcome {
      switch operation {
      case .get(let key):
        return entries[key].map { .entry($0.number, revision: $0.revision) } ?? .absent
      case .put(let key, let number):
        revision += 1
        entries[key] = Entry(number: number, revision: revision)
        return .written(revision: revision)
      case .apply(let steps): return apply(steps)
      }
    }

    private mutating func apply(_ steps: [Step]) -> Outcome {
      for (index, step) in steps.enumerated() {
        switch step {
        case .check(let key, let revision) where entries[key]?.revision != revision: return .conditionFailed(index + 1)
        case .checkAbsent(let key) where entries[key] != nil: return .conditionFailed(index + 1)
        default: break
        }
      }
      var next = entries
      let newRevision = revision + 1
      for (index, step) in steps.enumerated() {
        switch step {
        case .put(let key, let number): next[key] = Entry(number: number, revision: newRevision)
        case .delete(let key): next[key] = nil
        case .increment(let key, let amount):
          guard let entry = next[key] else { return .notFound(index + 1) }
          next[key] = Entry(number: entry.number + amount, revision: newRevision)
        case .check, .checkAbsent: break
        }
      }
      guard next != entries else { return .written(revision: 0) }
      entries = next
      revision = newRevision
      return .written(revision: newRevision)
    }
  }

  private struct Visited: Hashable {
    let done: UInt64
    let state: State
  }

  /// At most 64.
  var calls: [Call] = []

  /// Returns whether the calls are linearizable.
  func isLinearizable(from state: State) -> Bool {
    precondition(calls.count <= 64)
    var visited: Set<Visited> = []
    return continues(from: state, done: 0, &visited)
  }

  private func continues(from state: State, done: UInt64, _ visited: inout Set<Visited>) -> Bool {
    let remaining = calls.indices.filter { done >> UInt64($0) & 1 == 0 }
    guard let firstEnd = remaining.map({ calls[$0].end }).min() else { return true }
    guard visited.insert(Visited(done: done, state: state)).inserted else { return false }
    // A call that began after another one had ended comes after it.
    for index in remaining where calls[index].start <= firstEnd {
      var next = state
      if calls[index].outcome != .outpaced, next.execute(calls[index].operation) != calls[index].outcome { continue }
      if continues(from: calls[index].outcome == .outpaced ? state : next, done: done | 1 << UInt64(index), &visited) {
        return true
      }
    }
    return false
  }
}
