/// Any get, put and delete source of a type, its own type erased.
public struct AnyDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  // One source, seen from its three sides: the compiler can't yet store a composition of protocols with their types given.
  private let getter: any GetDataSource<T>
  private let putter: any PutDataSource<T>
  private let deleter: any DeleteDataSource<T>

  public init<S: GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>>(_ source: S) {
    if let source = source as? AnyDataSource {
      self = source
      return
    }
    getter = source
    putter = source
    deleter = source
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
