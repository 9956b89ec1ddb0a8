/// A source made of up to three: one that is got from, one that is put into and one that is deleted from. A part that is left out
/// fails with `DataSourceError.notImplemented`.
public struct DataSourceAssembler<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let getter: any GetDataSource<T>
  private let putter: any PutDataSource<T>
  private let deleter: any DeleteDataSource<T>

  public init(
    get: any GetDataSource<T> = VoidDataSource<T>(),
    put: any PutDataSource<T> = VoidDataSource<T>(),
    delete: any DeleteDataSource<T> = VoidDataSource<T>()
  ) {
    getter = get
    putter = put
    deleter = delete
  }

  public func get(_ query: any Query) async throws -> T { try await getter.get(query) }
  public func getAll(_ query: any Query) async throws -> [T] { try await getter.getAll(query) }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T { try await putter.put(value, in: query) }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await putter.putAll(array, in: query)
  }

  public func delete(_ query: any Query) async throws { try await deleter.delete(query) }
  public func deleteAll(_ query: any Query) async throws { try await deleter.deleteAll(query) }
}
