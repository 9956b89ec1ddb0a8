extension LarderClient {
  /// A store of the server's as a data source. Nothing is sent before the first call.
  ///
  /// `[UInt8]`, `Data` and `String` are kept as they are, other types as JSON.
  /// - Parameter creating: the engine to make the store with when a call finds that there is none, with its options if any: `memory`, or
  ///   `log?durability=none`. Without it such a call fails with `LarderError` of kind `storeUnknown`.
  public func dataSource<T: Codable & Sendable>(
    of type: T.Type = T.self, store: String, creating engine: String? = nil
  ) -> RemoteDataSource<T> {
    RemoteDataSource(self, store, standardCodec(of: type), creating: engine)
  }

  /// A store of the server's as a data source of what a codec makes of its bytes. See `dataSource(of:store:creating:)`.
  public func dataSource<T: Sendable>(
    store: String, codec: some ValueCodec<T>, creating engine: String? = nil
  ) -> RemoteDataSource<T> {
    RemoteDataSource(self, store, codec, creating: engine)
  }
}
