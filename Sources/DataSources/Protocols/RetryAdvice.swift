/// An error that states whether to repeat the call that it ended.
///
/// `RetryDataSource` and `RetryRepository` retry errors that say so. The errors of all data sources conform, also those
/// of a server. An error of your own source only has to declare what it is:
///
/// ```swift
/// extension WeatherError: RetryAdvice {
///   var isSafeToRetry: Bool { true }
///   var isTransient: Bool { self == .overloaded }
/// }
/// ```
public protocol RetryAdvice: Error {
  /// Whether repeating the call can do no harm: either the call wasn't executed, or executing it again changes nothing.
  var isSafeToRetry: Bool { get }
  /// Whether the same call may succeed later. By default, it may if it is safe to retry.
  var isTransient: Bool { get }
}

extension RetryAdvice {
  public var isTransient: Bool { isSafeToRetry }
}

extension DataSourceError: RetryAdvice {
  /// True: to put or delete the same value again changes nothing.
  public var isSafeToRetry: Bool { true }

  /// Whether the kind is `failed` or `unknown`. The same call would end with the same error of any other kind.
  public var isTransient: Bool { kind == .failed || kind == .unknown }
}
