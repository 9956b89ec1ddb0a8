import DataSources

// Harmony's initializers, where ours have other labels or types.

extension PaginationOffsetLimitQuery {
  /// Does the same as `init(offset:limit:)`.
  public init(_ offset: Int, _ limit: Int) {
    self.init(offset: offset, limit: limit)
  }
}

extension DataSourceMapper {
  /// Does the same as `init(_:toOut:toIn:)`, with mappers.
  public init(
    dataSource: some GetDataSource<In> & PutDataSource<In> & DeleteDataSource<In>,
    toInMapper: Mapper<Out, In>, toOutMapper: Mapper<In, Out>
  ) {
    self.init(dataSource, toOut: { try toOutMapper.map($0) }, toIn: { try toInMapper.map($0) })
  }
}

extension DataSourceValidator {
  /// Does the same as `init(_:_:)`, with one of Harmony's validations.
  public init(
    dataSource: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>, validator: some ObjectValidation
  ) {
    self.init(dataSource, Validation(validator))
  }
}

extension DataSourceAssembler {
  /// Creates a source from one that does everything.
  public init(_ dataSource: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>) {
    self.init(get: dataSource, put: dataSource, delete: dataSource)
  }
}

extension RetryDataSource {
  /// Creates a source that retries a call once.
  public init(_ dataSource: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>) {
    self.init(dataSource, RetryRule(retryCount: 1))
  }
}

extension TimedCacheDataSource {
  /// Does the same as `init(_:lifetime:)`.
  /// - Parameter expiryInterval: The time after which a cached value expires, in seconds.
  public init(
    _ dataSource: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>, expiryInterval: Double = 300
  ) {
    self.init(dataSource, lifetime: .seconds(expiryInterval))
  }
}

// MARK: - Repositories

extension CacheRepository {
  /// Does the same as `init(main:cache:validity:)`, with one of Harmony's validations.
  public init(
    main: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    cache: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    validator: some ObjectValidation
  ) {
    self.init(main: main, cache: cache, validity: Validation(validator))
  }
}

extension RetryRepository {
  /// Creates a repository that retries a call at most `retryCount` times, with the default pauses of a `RetryRule`.
  public init(
    _ repository: some GetRepository<T> & PutRepository<T> & DeleteRepository<T>, retryCount: Int = 1,
    retryIf: @escaping @Sendable (any Error) -> Bool = RetryRule.unlessUnsafe
  ) {
    self.init(repository, RetryRule(retryCount: retryCount, retryIf: retryIf))
  }
}

extension GetDataSource {
  /// Returns a repository of this source.
  public func toGetRepository() -> SingleGetDataSourceRepository<T> { SingleGetDataSourceRepository(self) }
}

extension PutDataSource {
  /// Returns a repository of this source.
  public func toPutRepository() -> SinglePutDataSourceRepository<T> { SinglePutDataSourceRepository(self) }
}

extension DeleteDataSource {
  /// Returns a repository of this source.
  public func toDeleteRepository() -> SingleDeleteDataSourceRepository<T> { SingleDeleteDataSourceRepository(self) }
}
