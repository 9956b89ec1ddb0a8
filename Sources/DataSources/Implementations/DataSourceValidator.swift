/// A source that returns only values that pass a validation; for others, `get`, `getAll` and `getEach` throw
/// `DataSourceError.notValid`. Values that are put are not validated.
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
    guard validation.accepts(value) else { throw notValid }
    return value
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    let list = try await source.getAll(query)
    guard validation.accepts(list) else { throw DataSourceError(.notValid, "the list didn't pass its validation") }
    return list
  }

  public func getEach(_ query: any Query) async throws -> [T?] {
    let values = try await source.getEach(query)
    guard values.allSatisfy({ $0.map(validation.accepts) ?? true }) else { throw notValid }
    return values
  }

  private var notValid: DataSourceError { DataSourceError(.notValid, "the value didn't pass its validation") }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T { try await source.put(value, in: query) }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await source.putAll(array, in: query)
  }

  public func delete(_ query: any Query) async throws { try await source.delete(query) }
  public func deleteAll(_ query: any Query) async throws { try await source.deleteAll(query) }
}

/// A rule for which values, and which lists of values, are acceptable.
public struct Validation<T: Sendable>: Sendable {
  @usableFromInline let acceptsValue: @Sendable (T) -> Bool
  private let acceptsList: @Sendable ([T]) -> Bool

  /// Creates a validation that accepts a list if it isn't empty and all of its elements are acceptable.
  public init(_ accepts: @escaping @Sendable (T) -> Bool) {
    self.init(accepts, list: { !$0.isEmpty && $0.allSatisfy(accepts) })
  }

  /// Creates a validation with a separate rule for lists.
  public init(_ accepts: @escaping @Sendable (T) -> Bool, list: @escaping @Sendable ([T]) -> Bool) {
    acceptsValue = accepts
    acceptsList = list
  }

  /// A validation that accepts everything.
  public static var always: Validation { Validation({ _ in true }, list: { _ in true }) }

  /// Returns whether a value passes.
  @inlinable public func accepts(_ value: T) -> Bool { acceptsValue(value) }
  /// Returns whether a list passes.
  public func accepts(_ list: [T]) -> Bool { acceptsList(list) }
}
