// A source is kept as functions and not as an existential of its protocol: what is behind a protocol runs as generic code, which looks its
// types up in every call. These functions are made where the source's own type is known, and are compiled for it.

/// Any get source of a type, its own type erased.
public struct AnyGetDataSource<T: Sendable>: GetDataSource {
  @usableFromInline let one: @Sendable (any Query) async throws -> T
  @usableFromInline let all: @Sendable (any Query) async throws -> [T]

  @inlinable
  public init(_ source: some GetDataSource<T>) {
    one = { try await source.get($0) }
    all = { try await source.getAll($0) }
  }

  @inlinable public func get(_ query: any Query) async throws -> T { try await one(query) }
  @inlinable public func getAll(_ query: any Query) async throws -> [T] { try await all(query) }
}

/// Any put source of a type, its own type erased.
public struct AnyPutDataSource<T: Sendable>: PutDataSource {
  @usableFromInline let one: @Sendable (T?, any Query) async throws -> T
  @usableFromInline let all: @Sendable ([T], any Query) async throws -> [T]

  @inlinable
  public init(_ source: some PutDataSource<T>) {
    one = { try await source.put($0, in: $1) }
    all = { try await source.putAll($0, in: $1) }
  }

  @discardableResult
  @inlinable
  public func put(_ value: T?, in query: any Query) async throws -> T { try await one(value, query) }

  @discardableResult
  @inlinable
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] { try await all(array, query) }
}

/// Any delete source of a type, its own type erased.
public struct AnyDeleteDataSource<T: Sendable>: DeleteDataSource {
  @usableFromInline let one: @Sendable (any Query) async throws -> Void
  @usableFromInline let all: @Sendable (any Query) async throws -> Void

  @inlinable
  public init(_ source: some DeleteDataSource<T>) {
    one = { try await source.delete($0) }
    all = { try await source.deleteAll($0) }
  }

  @inlinable public func delete(_ query: any Query) async throws { try await one(query) }
  @inlinable public func deleteAll(_ query: any Query) async throws { try await all(query) }
}
