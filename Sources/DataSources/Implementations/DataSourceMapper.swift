/// A source of `Out` over a source of `In`. Queries pass through unchanged, and so do the errors of the source and of
/// the two functions.
public struct DataSourceMapper<In: Sendable, Out: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  public typealias T = Out

  private let source: AnyDataSource<In>
  private let toOut: @Sendable (In) throws -> Out
  private let toIn: @Sendable (Out) throws -> In

  /// - Parameters:
  ///   - toOut: Converts a value of the source.
  ///   - toIn: Converts a value for the source. `toOut` must reverse it; otherwise `put` returns something else than
  ///     what was put.
  public init(
    _ source: some GetDataSource<In> & PutDataSource<In> & DeleteDataSource<In>,
    toOut: @escaping @Sendable (In) throws -> Out,
    toIn: @escaping @Sendable (Out) throws -> In
  ) {
    self.source = AnyDataSource(source)
    self.toOut = toOut
    self.toIn = toIn
  }

  public func get(_ query: any Query) async throws -> Out { try toOut(await source.get(query)) }
  public func getAll(_ query: any Query) async throws -> [Out] { try await source.getAll(query).map(toOut) }

  public func getEach(_ query: any Query) async throws -> [Out?] {
    try await source.getEach(query).map { try $0.map(toOut) }
  }

  @discardableResult
  public func put(_ value: Out?, in query: any Query) async throws -> Out {
    try toOut(await source.put(value.map(toIn), in: query))
  }

  @discardableResult
  public func putAll(_ array: [Out], in query: any Query) async throws -> [Out] {
    try await source.putAll(array.map(toIn), in: query).map(toOut)
  }

  public func delete(_ query: any Query) async throws { try await source.delete(query) }
  public func deleteAll(_ query: any Query) async throws { try await source.deleteAll(query) }
}
