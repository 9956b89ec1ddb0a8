import DataSources

/// The kind of data-source error that a body ends with; nil when it doesn't end with one.
func failure<R>(_ body: () async throws -> R) async -> DataSourceError.Kind? {
  do {
    _ = try await body()
    return nil
  } catch {
    return (error as? DataSourceError)?.kind
  }
}
