/// What makes a value, or a list of them, fit for use.
public struct Validation<T: Sendable>: Sendable {
  private let acceptsValue: @Sendable (T) -> Bool
  private let acceptsList: @Sendable ([T]) -> Bool

  /// A list is accepted when it isn't empty and all of its elements are accepted.
  public init(_ accepts: @escaping @Sendable (T) -> Bool) {
    self.init(accepts, list: { !$0.isEmpty && $0.allSatisfy(accepts) })
  }

  /// A validation with a rule of its own for lists.
  public init(_ accepts: @escaping @Sendable (T) -> Bool, list: @escaping @Sendable ([T]) -> Bool) {
    acceptsValue = accepts
    acceptsList = list
  }

  /// Accepts everything.
  public static var always: Validation { Validation({ _ in true }, list: { _ in true }) }

  /// Whether a value passes.
  public func accepts(_ value: T) -> Bool { acceptsValue(value) }
  /// Whether a list passes.
  public func accepts(_ list: [T]) -> Bool { acceptsList(list) }
}
