import DataSources
import Testing

@Suite struct GetEachTests {
  @Test func `getEach is one call in every composed source`() async throws {
    let source = CountedDataSource<Int>()
    try await source.putAll([1, 2], forId: ["a", "b"])
    let assembled = DataSourceAssembler(get: AnyGetDataSource(source), put: source, delete: source)
    let validated = DataSourceValidator(DebugDataSource(assembled), Validation { $0 < 10 })
    let mapped = DataSourceMapper(RetryDataSource(validated, retryCount: 1), toOut: { -$0 }, toIn: { -$0 })
    let repository = SingleDataSourceRepository(AnyDataSource(mapped))
    let retried = RetryRepository(repository, RetryRule(retryCount: 1))
    let outer = RepositoryMapper(
      RepositoryAssembler(get: retried, put: retried, delete: retried), toOut: { $0 }, toIn: { $0 })
    #expect(try await outer.getEach(["b", "x", "a"]) == [-2, nil, -1])
    #expect(source.reads == [["b", "x", "a"]])
    try await source.put(10, forId: "x")
    #expect(await failure { try await outer.getEach(["a", "x"]) } == .notValid)
    #expect(await failure { try await outer.getEach(IdQuery("a")) } == .queryNotSupported)
  }
}

@Suite struct ValidatorTests {
  @Test func `52: values are validated when they are read, and only then`() async throws {
    let source = DataSourceValidator(InMemoryDataSource<Int>(), Validation { $0 > 0 })
    #expect(try await source.put(-1, forId: "bad") == -1)
    #expect(try await source.putAll([1, -1], forId: "list") == [1, -1])
    #expect(await failure { try await source.get("bad") } == .notValid)
    #expect(await failure { try await source.getAll("list") } == .notValid)
    try await source.put(1, forId: "good")
    #expect(try await source.get("good") == 1)
    try await source.delete("bad")
    #expect(await failure { try await source.get("bad") } == .notFound)
  }

  @Test func `52: an empty list is invalid unless a rule says otherwise`() async throws {
    let inner = InMemoryDataSource<Int>()
    try await inner.putAll([], forId: "empty")
    let strict = DataSourceValidator(inner, Validation { _ in true })
    #expect(await failure { try await strict.getAll("empty") } == .notValid)
    let lenient = DataSourceValidator(inner, Validation({ _ in true }, list: { $0.count < 3 }))
    #expect(try await lenient.getAll("empty") == [])
  }
}

@Suite struct AssemblerTests {
  @Test func `operations of an assembler's missing parts fail`() async throws {
    let source = InMemoryDataSource<Int>()
    try await source.put(1, forId: "a")
    let readable = DataSourceAssembler(get: source)
    #expect(try await readable.get("a") == 1)
    #expect(await failure { try await readable.put(2, forId: "a") } == .notImplemented)
    #expect(await failure { try await readable.delete("a") } == .notImplemented)
  }
}

@Suite struct DebugTests {
  @Test func `a source for tests delays, logs and fails calls`() async throws {
    let lines = Recorder<String>()
    let inner = ScriptedDataSource<Int>()
    let slow = DebugDataSource(inner, delay: .milliseconds(20), log: { lines.add($0) })
    let took = try await ContinuousClock().measure { _ = try await slow.put(1, forId: "a") }
    #expect(took >= .milliseconds(20))
    #expect(lines.events.count == 2 && lines.events.allSatisfy { $0.hasPrefix("put IdQuery<String>(id: \"a\")") })
    let broken = DebugDataSource(inner, errorProbability: 1, error: DataSourceError.unknown)
    #expect(await failure { try await broken.get("a") } == .unknown)
    #expect(inner.calls == [.put])
  }
}
