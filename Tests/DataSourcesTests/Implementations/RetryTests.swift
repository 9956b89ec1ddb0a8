import Testing

@testable import DataSources

@Suite struct RetryTests {
  struct Unsafe: RetryAdvice {
    let isSafeToRetry = false
  }

  private let source = ScriptedDataSource<Int>()

  private func retried(
    _ count: Int, if retryIf: @escaping @Sendable (any Error) -> Bool = { _ in true }
  ) -> RetryDataSource<Int> {
    RetryDataSource(source, RetryRule(retryCount: count, pause: .zero, retryIf: retryIf))
  }

  @Test func `53: n retries make n + 1 attempts, and the last error surfaces`() async {
    source.fail(with: DataSourceError.failed, DataSourceError.unknown, DataSourceError.notValid)
    #expect(await failure { try await retried(2).get("a") } == .notValid)
    #expect(source.calls == [.get, .get, .get])
  }

  @Test func `53: a successful attempt is the last`() async throws {
    source.fail(with: DataSourceError.failed, DataSourceError.failed)
    #expect(try await retried(5).put(1, forId: "a") == 1)
    #expect(source.calls == [.put, .put, .put])
  }

  @Test func `53: without retries, one attempt is made`() async {
    source.fail(with: DataSourceError.failed)
    #expect(await failure { try await retried(0).delete("a") } == .failed)
    #expect(source.calls == [.delete])
  }

  @Test func `53: retryIf stops the retries`() async {
    source.fail(with: DataSourceError.failed, DataSourceError.notFound, DataSourceError.failed)
    let rule = retried(5) { ($0 as? DataSourceError)?.kind == .failed }
    #expect(await failure { try await rule.getAll("a") } == .notFound)
    #expect(source.calls == [.getAll, .getAll])
  }

  @Test func `an error that isn't safe to retry isn't retried unless a rule says so`() async {
    source.fail(with: Unsafe(), CancellationError())
    let byDefault = RetryDataSource(source, RetryRule(retryCount: 3, pause: .zero))
    await #expect(throws: Unsafe.self) { try await byDefault.put(1, forId: "a") }
    await #expect(throws: CancellationError.self) { try await retried(3).put(1, forId: "a") }
    #expect(source.calls.count == 2)
  }

  @Test(arguments: DataSourceError.Kind.allCases)
  func `by default, only transient errors are retried`(_ kind: DataSourceError.Kind) async {
    let isTransient = kind == .failed || kind == .unknown
    let source = RetryDataSource(source, RetryRule(retryCount: 1, pause: .zero))
    self.source.fail(with: DataSourceError(kind), DataSourceError(kind))
    #expect(await failure { try await source.get("a") } == kind)
    #expect(self.source.calls.count == (isTransient ? 2 : 1))
  }

  @Test func `an error of an unknown kind isn't retried unless a rule says so`() async throws {
    struct Unlabeled: Error {}
    source.fail(with: Unlabeled(), Unlabeled())
    let byDefault = RetryDataSource(source, RetryRule(retryCount: 3, pause: .zero))
    await #expect(throws: Unlabeled.self) { try await byDefault.put(1, forId: "a") }
    let always = RetryDataSource(source, RetryRule(retryCount: 3, pause: .zero, retryIf: RetryRule.unlessUnsafe))
    #expect(try await always.put(1, forId: "a") == 1)
    #expect(source.calls.count == 3)
  }

  @Test func `pauses double up to the maximum, less at most half`() {
    let rule = RetryRule(retryCount: 100, pause: .milliseconds(10), maxPause: .milliseconds(50))
    for (retry, full) in [(0, 10), (1, 20), (2, 40), (3, 50), (99, 50)] {
      let pause = rule.pauseLength(before: retry)
      #expect(pause <= .milliseconds(full) && pause >= .milliseconds(full) / 2)
    }
  }

  @Test func `a cancelled task doesn't wait for the next attempt`() async {
    source.fail(with: DataSourceError.failed)
    let slow = RetryDataSource(source, RetryRule(retryCount: 1, pause: .seconds(60), maxPause: .seconds(60)))
    let call = Task { try await slow.get("a") }
    while source.calls.isEmpty { await Task.yield() }
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
  }

  @Test func `a repository retries with the same operation`() async throws {
    let main = ScriptedDataSource<Int>()
    main.fail(with: DataSourceError.failed, DataSourceError.failed)
    let repository = RetryRepository(
      CacheRepository(main: main, cache: InMemoryDataSource()), RetryRule(retryCount: 2, pause: .zero))
    #expect(try await repository.put(1, forId: "a", operation: .main) == 1)
    #expect(await failure { try await repository.get("a", operation: .cache) } == .notFound)
    #expect(try await repository.get("a", operation: .mainSync) == 1)
    #expect(main.calls == [.put, .put, .put, .get])
  }
}
