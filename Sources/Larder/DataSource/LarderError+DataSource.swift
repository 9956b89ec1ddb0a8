import DataSources

extension LarderError: RetryAdvice {}

extension LarderError {
  /// What a data source throws in its place. A code that all data sources have becomes that error, as a local source would throw it, and
  /// a cancellation `CancellationError`. Everything else happened on the way or is the server's own affair: it stays a `LarderError`,
  /// which says whether the call is safe to be made again.
  var ofDataSource: any Error {
    switch kind {
    case .cancelled: CancellationError()
    case .keyInvalid: DataSourceError(.illegalArgument, message)
    default: DataSourceError.Kind(rawValue: Int(code)).map { DataSourceError($0, message) } ?? self
    }
  }
}
