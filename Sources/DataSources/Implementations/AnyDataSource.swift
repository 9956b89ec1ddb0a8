// Type erasure keeps a source as functions, not as an existential of its protocol. Calls through a protocol run generic
// code, which looks types up in every call. These functions are created where the source's own type is known, and are
// specialized for it.

/// A get, put and delete source of values of one type, whose own type is erased. Each call costs one more asynchronous
/// call, which takes less than 0.1 µs.
public struct AnyDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  // The same source three times.
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
  @inlinable public func getEach(_ query: any Query) async throws -> [T?] { try await getter.getEach(query) }

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

/// A get source of values of one type, whose own type is erased.
public struct AnyGetDataSource<T: Sendable>: GetDataSource {
  @usableFromInline let one: @Sendable (any Query) async throws -> T
  @usableFromInline let all: @Sendable (any Query) async throws -> [T]
  @usableFromInline let each: @Sendable (any Query) async throws -> [T?]

  @inlinable
  public init(_ source: some GetDataSource<T>) {
    one = { try await source.get($0) }
    all = { try await source.getAll($0) }
    each = { try await source.getEach($0) }
  }

  @inlinable public func get(_ query: any Query) async throws -> T { try await one(query) }
  @inlinable public func getAll(_ query: any Query) async throws -> [T] { try await all(query) }
  @inlinable public func getEach(_ query: any Query) async throws -> [T?] { try await each(query) }
}

/// A put source of values of one type, whose own type is erased.
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

/// A delete source whose own type is erased.
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
