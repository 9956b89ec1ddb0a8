/// The work that evaluation may still do, in units of about ten nanoseconds.
///
/// Whatever a document or a selector can make long spends units as it works: for each condition, element, combination
/// and state of a pattern, and for every 64 bytes of text. Once the budget is exhausted, evaluation ends as soon as it
/// can, and what it has come to means nothing: the call that was passed the budget throws `ExhaustedBudgetError` instead
/// of returning a result.
package struct WorkBudget: ~Copyable {
  /// The units that can be spent before more are asked for.
  private var remaining: Int
  /// All units that were granted.
  private var granted: Int
  private let grant: (() -> Bool)?
  /// Whether evaluation has ended early.
  package private(set) var isExhausted = false

  /// The number of units after which `grant` is asked.
  package static let unitsPerGrant = 1 << 13

  /// Creates a budget of some units: all that there can be, by default.
  package init(units: Int = .max / 2) {
    (remaining, granted) = (units, units)
    grant = nil
  }

  /// Creates a budget without a fixed limit.
  /// - Parameter grant: Called after about each tenth of a millisecond of work. Returns whether the work may go on. No
  ///   lock is held by evaluation, so it may wait.
  package init(grantedBy grant: @escaping () -> Bool) {
    (remaining, granted) = (Self.unitsPerGrant, Self.unitsPerGrant)
    self.grant = grant
  }

  /// The units that were spent. Each request that was refused counts as one.
  package var spentUnits: Int { granted - remaining }

  /// Spends some units.
  /// - Returns: Whether the work may go on.
  @discardableResult @inline(__always)
  package mutating func spend(_ units: Int = 1) -> Bool {
    remaining &-= units
    return remaining >= 0 || renew(after: units)
  }

  /// Spends the units for reading some bytes.
  /// - Returns: Whether the work may go on.
  @discardableResult @inline(__always)
  mutating func spend(bytes: Int) -> Bool { spend(1 &+ bytes &>> 6) }

  /// Spends some units, in code that can throw, such as the comparisons of a sort.
  @inline(__always)
  mutating func require(_ units: Int = 1) throws(ExhaustedBudgetError) {
    guard spend(units) else { throw ExhaustedBudgetError() }
  }

  /// Spends the units for reading some bytes, in code that can throw.
  @inline(__always)
  mutating func require(bytes: Int) throws(ExhaustedBudgetError) {
    guard spend(bytes: bytes) else { throw ExhaustedBudgetError() }
  }

  /// - Throws: If evaluation has ended early, so that it has no result.
  @inline(__always)
  package func check() throws(ExhaustedBudgetError) {
    guard !isExhausted else { throw ExhaustedBudgetError() }
  }

  /// Returns the result of work that isn't limited.
  static func withoutLimit<Result>(
    _ body: (inout WorkBudget) throws(ExhaustedBudgetError) -> Result
  ) -> Result {
    var budget = WorkBudget()
    do throws(ExhaustedBudgetError) { return try body(&budget) } catch {
      preconditionFailure("all the units that there can be were spent")
    }
  }

  @inline(never)
  private mutating func renew(after units: Int) -> Bool {
    guard !isExhausted else {
      remaining += units - 1
      return false
    }
    if let grant, grant() {
      granted += Self.unitsPerGrant - remaining
      remaining = Self.unitsPerGrant
      return true
    }
    isExhausted = true
    return false
  }
}

/// Work ended early, because its budget was exhausted: there is no result.
package struct ExhaustedBudgetError: Error {
  package init() {}
}
