/// Lets changes of the same keys happen one after the other, in the order in which they were asked for.
///
/// For changes that wait for something, which a lock can't protect. A turn isn't given up if its task is cancelled.
final class KeyTurns: Sendable {
  private struct Turn {
    var isTaken = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  /// Keys share turns, so that the memory is constant.
  private static let count = 64
  private let turns = LockedValue([Turn](repeating: Turn(), count: count))

  /// Runs a body as soon as no other body runs for one of its keys. A body must not run another one.
  func run<R>(_ scope: KeyScope, _ body: () async throws -> R) async rethrows -> R {
    // In order, so that two bodies never wait for each other.
    let slots = scope.slots(below: Self.count)
    for slot in slots { await take(slot) }
    defer { for slot in slots { giveBack(slot) } }
    return try await body()
  }

  private func take(_ slot: Int) async {
    if tryTake(slot) { return }
    await withCheckedContinuation { continuation in
      let isFree = turns.withLock { turns in
        let isFree = !turns[slot].isTaken
        if isFree { turns[slot].isTaken = true } else { turns[slot].waiters.append(continuation) }
        return isFree
      }
      if isFree { continuation.resume() }
    }
  }

  private func tryTake(_ slot: Int) -> Bool {
    turns.withLock { turns in
      defer { turns[slot].isTaken = true }
      return !turns[slot].isTaken
    }
  }

  /// Hands a turn to the first waiter, or makes it free.
  private func giveBack(_ slot: Int) {
    let next = turns.withLock { turns -> CheckedContinuation<Void, Never>? in
      guard turns[slot].waiters.isEmpty else { return turns[slot].waiters.removeFirst() }
      turns[slot].isTaken = false
      return nil
    }
    next?.resume()
  }
}
