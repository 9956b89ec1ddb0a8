/// A source that gives only values that pass a validation; `get` and `getAll` throw `DataSourceError.notValid` for others. What is put
/// is not looked at.
public struct DataSourceValidator<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let validation: Validation<T>

  public init(
    _ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>, _ validation: Validation<T>
  ) {
    self.source = AnyDataSource(source)
    self.validation = validation
  }

  public func get(_ query: any Query) async throws -> T {
    let value = try await source.get(query)
    guard validation.accepts(value) else { throw DataSourceError(.notValid, "the value didn't pass its validation") }
    return value
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    let list = try await source.getAll(query)
    guard validation.accepts(list) else { throw DataSourceError(.notValid, "the list didn't pass its validation") }
    return list
  }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T { try await source.put(value, in: query) }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await source.putAll(array, in: query)
  }

  public func delete(_ query: any Query) async throws { try await source.delete(query) }
  public func deleteAll(_ query: any Query) async throws { try await source.deleteAll(query) }
}
