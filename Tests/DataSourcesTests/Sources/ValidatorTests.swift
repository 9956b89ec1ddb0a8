import DataSources
import Testing

@Suite struct ValidatorTests {
  @Test func `52: values are validated when they are got, and only then`() async throws {
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
