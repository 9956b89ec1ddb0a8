/// Any get source of a type, its own type erased.
public struct AnyGetDataSource<T: Sendable>: GetDataSource {
  private let source: any GetDataSource<T>

  public init(_ source: some GetDataSource<T>) {
    self.source = source
  }

  public func get(_ query: any Query) async throws -> T { try await source.get(query) }
  public func getAll(_ query: any Query) async throws -> [T] { try await source.getAll(query) }
}

/// Any put source of a type, its own type erased.
public struct AnyPutDataSource<T: Sendable>: PutDataSource {
  private let source: any PutDataSource<T>

  public init(_ source: some PutDataSource<T>) {
    self.source = source
  }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T { try await source.put(value, in: query) }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await source.putAll(array, in: query)
  }
}

/// Any delete source of a type, its own type erased.
public struct AnyDeleteDataSource<T: Sendable>: DeleteDataSource {
  private let source: any DeleteDataSource<T>

  public init(_ source: some DeleteDataSource<T>) {
    self.source = source
  }

  public func delete(_ query: any Query) async throws { try await source.delete(query) }
  public func deleteAll(_ query: any Query) async throws { try await source.deleteAll(query) }
}
