import Testing

@testable import DataSources

@Suite struct KeyEpochsTests {
  private let a = KeyScope.key(EntryKey("a"))
  private let both = KeyScope.keys([EntryKey("a"), EntryKey("b")])

  @Test func `an epoch is current until its keys change`() {
    var epochs = KeyEpochs()
    for scope in [a, both, .all] {
      for change in [a, both, .all] {
        let epoch = epochs.epoch(of: scope)
        #expect(epochs.isCurrent(epoch, of: scope))
        epochs.advance(change)
        #expect(!epochs.isCurrent(epoch, of: scope))
      }
    }
  }

  @Test func `a change keeps the epochs of its keys out of date until it has ended`() {
    var epochs = KeyEpochs()
    for scope in [a, both, .all] {
      let before = epochs.epoch(of: a)
      epochs.beginChange(scope)
      let during = epochs.epoch(of: a)
      #expect(!epochs.isCurrent(before, of: a) && !epochs.isCurrent(during, of: a))
      epochs.endChange(scope)
      #expect(!epochs.isCurrent(before, of: a) && !epochs.isCurrent(during, of: a))
      #expect(epochs.isCurrent(epochs.epoch(of: a), of: a))
    }
  }

  @Test func `changes of other keys rarely matter`() {
    var epochs = KeyEpochs()
    let keys = (0..<100).map { KeyScope.key(EntryKey("other \($0)")) }
    let before = keys.map { epochs.epoch(of: $0) }
    epochs.advance(a)
    let count = zip(keys, before).count { epochs.isCurrent($1, of: $0) }
    #expect(count > 90)
  }

  @Test func `neither of two overlapping changes of a key is its only change`() {
    for (first, second) in [(a, a), (a, both), (both, a), (a, .all), (.all, a), (.all, .all), (both, both)] {
      var epochs = KeyEpochs()
      let alone = epochs.beginChange(first)
      #expect(epochs.isOnlyChange(alone, of: first))
      let rival = epochs.beginChange(second)
      #expect(!epochs.isOnlyChange(alone, of: first) && !epochs.isOnlyChange(rival, of: second))
      epochs.endChange(first)
      #expect(!epochs.isOnlyChange(rival, of: second))
      epochs.endChange(second)
      let next = epochs.beginChange(first)
      #expect(epochs.isOnlyChange(next, of: first))
    }
  }
}
