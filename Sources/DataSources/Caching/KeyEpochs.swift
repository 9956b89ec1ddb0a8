/// Counts the changes of keys, so that a slow reader doesn't put a value into a cache that was changed meanwhile.
///
/// A reader notes the epoch of its keys before it reads a value elsewhere. It may put the value into the cache if that
/// epoch `isCurrent`: no change of the keys has begun, ended or been in progress since. A cache guards its
/// epochs with its own lock, so that nothing happens between that question and the insertion.
///
/// The memory is constant: keys share counters. A change of another key with the same counter only keeps a value out of
/// the cache. Every call is O(1) per key, and O(1) for all keys.
package struct KeyEpochs: Sendable {
  /// A number that never decreases.
  package typealias Epoch = UInt64

  private struct Counter {
    var epoch: Epoch = 0
    /// The number of changes in progress.
    var changeCount = 0
  }

  private static let count = 512
  private var counters = [Counter](repeating: Counter(), count: count)
  /// Changes of all keys. Each of them also counts as one of every key.
  private var wholesale = Counter()
  /// Changes of any keys: what a reader of all keys must not miss.
  private var total = Counter()

  package init() {}

  /// Returns the current epoch of a scope.
  package func epoch(of scope: KeyScope) -> Epoch {
    // A sum of numbers that never decrease grows if one of them does.
    switch scope {
    case .all: total.epoch
    case .key(let key): wholesale.epoch + counters[key.slot(below: Self.count)].epoch
    case .keys: scope.slots(below: Self.count).reduce(wholesale.epoch) { $0 + counters[$1].epoch }
    }
  }

  /// Returns whether no change has begun or ended since an epoch, and none is in progress: what a reader read at that
  /// epoch is up to date.
  package func isCurrent(_ epoch: Epoch, of scope: KeyScope) -> Bool {
    epoch == self.epoch(of: scope) && changeCount(of: scope) == 0
  }

  /// Returns whether a change has no rival: none has begun or ended since it began, and no other is in progress.
  /// - Parameter epoch: The result of `beginChange`.
  package func isOnlyChange(_ epoch: Epoch, of scope: KeyScope) -> Bool {
    epoch == self.epoch(of: scope) && changeCount(of: scope) == 1
  }

  /// The highest number of changes in progress of a key of a scope.
  private func changeCount(of scope: KeyScope) -> Int {
    switch scope {
    case .all: total.changeCount
    case .key, .keys:
      wholesale.changeCount + (scope.slots(below: Self.count).map { counters[$0].changeCount }.max() ?? 0)
    }
  }

  /// Begins a change: until it ends, no epoch of its keys is current.
  /// - Returns: The epoch of the scope from now on.
  @discardableResult
  package mutating func beginChange(_ scope: KeyScope) -> Epoch {
    advance(scope, changes: 1)
    return epoch(of: scope)
  }

  /// Ends a change. Reads that have begun before must not be cached.
  package mutating func endChange(_ scope: KeyScope) {
    advance(scope, changes: -1)
  }

  /// Makes every earlier epoch of a scope out of date: a change that has happened elsewhere.
  package mutating func advance(_ scope: KeyScope) {
    advance(scope, changes: 0)
  }

  private mutating func advance(_ scope: KeyScope, changes: Int) {
    func advance(_ counter: inout Counter) {
      counter.epoch += 1
      counter.changeCount += changes
    }
    advance(&total)
    switch scope {
    case .all: advance(&wholesale)
    case .key, .keys: for slot in scope.slots(below: Self.count) { advance(&counters[slot]) }
    }
  }
}
