import Dispatch
import Platform

/// Tells of refusals, and of no more of them than a log bears: a client can ask for what it may not do as often as it likes. What is left out
/// is counted.
package final class RefusalLog: Sendable {
  package enum Event: Equatable, Sendable {
    case refused(Refusal)
    /// So many more were refused, of which nothing was told.
    case leftOut(Int)
  }

  static let windowMilliseconds: UInt64 = 60_000
  /// Of one user's refusals so many are told in a window, so that one user can't hide another's.
  static let mostOfUser = 10
  static let mostOfAll = 60

  private let window = Lock(Window())
  private let tell: @Sendable (Event) -> Void

  init(_ tell: @escaping @Sendable (Event) -> Void) {
    self.tell = tell
  }

  func note(_ refusal: Refusal, now: UInt64 = monotonicMilliseconds()) {
    if let count = window.withLock({ $0.restart(now) }) { tell(.leftOut(count)) }
    let (isTold, isFirstLeftOut) = window.withLock { $0.take(refusal.peer?.user) }
    if isTold { tell(.refused(refusal)) }
    guard isFirstLeftOut else { return }
    // Nothing else may come that would tell of them.
    let milliseconds = Int(Self.windowMilliseconds)
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [weak self] in
      self?.tellLeftOut()
    }
  }

  /// Tells how many were left out until now.
  func tellLeftOut() {
    let count = window.withLock { window in
      defer { window.leftOut = 0 }
      return window.leftOut
    }
    if count > 0 { tell(.leftOut(count)) }
  }
}

/// A time in which so much may be told.
private struct Window {
  var end: UInt64 = 0
  var told = 0
  var toldOf: [UInt32?: Int] = [:]
  var leftOut = 0

  /// Begins a new window when this one has ended.
  /// - Returns: how many were left out of it, if any were.
  mutating func restart(_ now: UInt64) -> Int? {
    guard now >= end else { return nil }
    let count = leftOut
    self = Window(end: now + RefusalLog.windowMilliseconds)
    return count > 0 ? count : nil
  }

  mutating func take(_ user: UInt32?) -> (isTold: Bool, isFirstLeftOut: Bool) {
    guard told < RefusalLog.mostOfAll, toldOf[user, default: 0] < RefusalLog.mostOfUser else {
      leftOut += 1
      return (false, leftOut == 1)
    }
    told += 1
    toldOf[user, default: 0] += 1
    return (true, false)
  }
}
