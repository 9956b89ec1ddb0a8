/// The operations where there is no `await`. Each starts a task and returns at once; a future that nobody looks at does no harm.
extension GetDataSource {
  /// One value, later.
  @discardableResult
  public func get(_ query: any Query) -> Future<T> {
    Future { try await self.get(query) }
  }

  /// A list of values, later.
  @discardableResult
  public func getAll(_ query: any Query) -> Future<[T]> {
    Future { try await self.getAll(query) }
  }
}

extension PutDataSource {
  /// Puts one value; the future has what was stored.
  @discardableResult
  public func put(_ value: T?, in query: any Query) -> Future<T> {
    Future { try await self.put(value, in: query) }
  }

  /// Puts a list of values; the future has what was stored.
  @discardableResult
  public func putAll(_ array: [T], in query: any Query) -> Future<[T]> {
    Future { try await self.putAll(array, in: query) }
  }
}

extension DeleteDataSource {
  /// Deletes what the query addresses, later.
  @discardableResult
  public func delete(_ query: any Query) -> Future<Void> {
    Future { try await self.delete(query) }
  }

  /// Behaves as `delete`.
  @discardableResult
  public func deleteAll(_ query: any Query) -> Future<Void> {
    Future { try await self.deleteAll(query) }
  }
}
