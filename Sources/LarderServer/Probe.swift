import Platform

/// A question to several threads: do you still serve? Each answers when it comes to it; one that hangs never does.
package final class Probe: Sendable {
  private let waitsFor: Lock<[Int: String]>
  private let answered: @Sendable () -> Void

  /// - Parameter answered: called once, by the last thread to answer.
  init(_ names: [String], _ answered: @escaping @Sendable () -> Void) {
    waitsFor = Lock(Dictionary(uniqueKeysWithValues: names.enumerated().map { ($0, $1) }))
    self.answered = answered
  }

  /// Who has not answered, by name.
  package var silent: [String] { waitsFor.withLock { Array($0.values) }.sorted() }

  func answer(_ index: Int) {
    let isLast = waitsFor.withLock { $0.removeValue(forKey: index) != nil && $0.isEmpty }
    if isLast { answered() }
  }
}
