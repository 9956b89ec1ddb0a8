import DataSources
import FoundationEssentials

// Harmony's validations are objects that accept any type. New code uses a `Validation`.

/// A rule for which objects, and which arrays of objects, are valid.
public protocol ObjectValidation: Sendable {
  /// Returns whether an object is valid.
  func isObjectValid<T>(_ object: T) -> Bool
  /// Returns whether an array is valid. The default: it isn't empty, and all of its objects are valid.
  func isArrayValid<T>(_ objects: [T]) -> Bool
}

extension ObjectValidation {
  public func isArrayValid<T>(_ objects: [T]) -> Bool {
    !objects.isEmpty && objects.allSatisfy { isObjectValid($0) }
  }
}

/// A validation that accepts all objects, and all arrays that aren't empty.
public struct DefaultObjectValidation: ObjectValidation {
  public init() {}

  public func isObjectValid<T>(_ object: T) -> Bool { true }
}

extension Validation {
  /// Creates a validation from one of Harmony's.
  public init(_ validation: some ObjectValidation) {
    self.init({ validation.isObjectValid($0) }, list: { validation.isArrayValid($0) })
  }
}

// MARK: - Vastra

/// What a strategy says about an object.
public enum VastraStrategyResult: Hashable, Sendable {
  /// The strategy can't tell.
  case unknown
  case valid
  case invalid
}

/// A part of a `VastraService`, which may or may not have a verdict on an object.
public protocol VastraStrategy: Sendable {
  /// Returns what the strategy says about an object.
  func isObjectValid<T>(_ object: T) -> VastraStrategyResult
}

/// A validation by the first strategy that has a verdict.
public struct VastraService: ObjectValidation {
  public let strategies: [any VastraStrategy]
  /// Whether an object is valid that no strategy has a verdict on.
  public var defaultValidationState = false

  public init(_ strategies: [any VastraStrategy]) {
    self.strategies = strategies
  }

  public func isObjectValid<T>(_ object: T) -> Bool {
    for strategy in strategies {
      switch strategy.isObjectValid(object) {
      case .valid: return true
      case .invalid: return false
      case .unknown: continue
      }
    }
    return defaultValidationState
  }
}

/// The time for which an object is valid.
public enum Time: Hashable, Sendable {
  case seconds(Int)
  case minutes(Int)
  case hours(Int)
  case days(Int)
  case weeks(Int)
  /// The object never expires.
  case never

  /// The time in seconds; nil for never.
  fileprivate var seconds: Double? {
    switch self {
    case .seconds(let count): Double(count)
    case .minutes(let count): Double(count) * 60
    case .hours(let count): Double(count) * 3_600
    case .days(let count): Double(count) * 86_400
    case .weeks(let count): Double(count) * 604_800
    case .never: nil
    }
  }
}

/// An object that a `VastraTimestampStrategy` can judge.
public protocol VastraTimestampStrategyDataSource {
  /// The time of the last update; nil if it isn't known.
  var lastUpdate: Date? { get }
  /// Returns the time for which the object is valid after its last update.
  func expiryTimeInterval() -> Time
}

/// A strategy that accepts objects for a time after their last update. It has no verdict on objects without a time of
/// the last update, and on other types.
public struct VastraTimestampStrategy: VastraStrategy {
  private let now: @Sendable () -> Date

  public init() {
    self.init(now: { Date() })
  }

  /// Creates a strategy with a clock, for tests.
  public init(now: @escaping @Sendable () -> Date) {
    self.now = now
  }

  public func isObjectValid<T>(_ object: T) -> VastraStrategyResult {
    guard let object = object as? any VastraTimestampStrategyDataSource, let lastUpdate = object.lastUpdate else {
      return .unknown
    }
    guard let lifetime = object.expiryTimeInterval().seconds else { return .valid }
    return now().timeIntervalSince(lastUpdate) < lifetime ? .valid : .invalid
  }
}
