extension Future {
  /// A future that an asynchronous operation resolves. The operation runs in a task of its own, which begins at once.
  public convenience init(_ operation: @escaping @Sendable () async throws -> T) {
    self.init()
    Task {
      do {
        resolve(.success(try await operation()))
      } catch {
        resolve(.failure(error))
      }
    }
  }

  /// Waits for the value.
  /// - Throws: the future's error; `CancellationError`, at once, when the waiting task is cancelled. The future itself goes on then.
  public var value: T {
    get async throws {
      if let result { return try result.get() }
      // What is waited for is a future of the waiter's own: the first to resolve it, the result or the cancellation, wins.
      let waiter = Future()
      subscribe { waiter.resolve($0) }
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          waiter.subscribe { continuation.resume(with: $0) }
        }
      } onCancel: {
        waiter.resolve(.failure(CancellationError()))
      }
    }
  }
}
