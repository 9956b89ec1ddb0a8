import DataSources

extension LarderClient {
  /// Returns a store of the server as a data source. Nothing is sent before the first call.
  ///
  /// `[UInt8]`, `Data` and `String` are kept as they are, other types as JSON.
  /// - Parameter creating: The engine, with its options if any, of the store that a call creates if there is none:
  ///   `memory`, or `log?durability=none`. Without it, such a call throws a `LarderError` of the kind `storeUnknown`.
  public func dataSource<T: Codable & Sendable>(
    of type: T.Type = T.self, store: String, creating engine: String? = nil
  ) -> RemoteDataSource<T> {
    RemoteDataSource(self, store, defaultCodec(of: type), creating: engine)
  }

  /// Returns a store of the server as a data source whose values a codec decodes. See `dataSource(of:store:creating:)`.
  public func dataSource<T: Sendable>(
    store: String, codec: some ValueCodec<T>, creating engine: String? = nil
  ) -> RemoteDataSource<T> {
    RemoteDataSource(self, store, codec, creating: engine)
  }
}

extension LarderError: RetryAdvice {
  /// Whether the same call may succeed later: it was not executed, or its outcome is unknown, and the client is open.
  public var isTransient: Bool { outcome != .rejected && kind != .closed }
}

extension LarderError {
  /// The error that a data source throws instead. A code that all data sources have becomes the error that a local
  /// source would throw, and a cancellation becomes `CancellationError`. Any other error stays a `LarderError`, which
  /// says whether the call is safe to repeat.
  var asDataSourceError: any Error {
    switch kind {
    case .cancelled: CancellationError()
    case .keyInvalid: DataSourceError(.illegalArgument, message)
    default: DataSourceError.Kind(rawValue: Int(code)).map { DataSourceError($0, message) } ?? self
    }
  }
}
