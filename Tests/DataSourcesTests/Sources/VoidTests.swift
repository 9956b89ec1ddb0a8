import DataSources
import Testing

@Suite struct VoidTests {
  @Test func `51: a void source has nothing`() async {
    let source = VoidDataSource<Int>()
    #expect(await failure { try await source.get(1) } == .notImplemented)
    #expect(await failure { try await source.getAll(VoidQuery()) } == .notImplemented)
    #expect(await failure { try await source.put(nil, forId: 1) } == .notImplemented)
    #expect(await failure { try await source.putAll([], forId: 1) } == .notImplemented)
    #expect(await failure { try await source.delete(1) } == .notImplemented)
    #expect(await failure { try await source.deleteAll(AllObjectsQuery()) } == .notImplemented)
  }

  @Test func `an assembler's missing parts have nothing`() async throws {
    let source = InMemoryDataSource<Int>()
    try await source.put(1, forId: "a")
    let readable = DataSourceAssembler(get: source)
    #expect(try await readable.get("a") == 1)
    #expect(await failure { try await readable.put(2, forId: "a") } == .notImplemented)
    #expect(await failure { try await readable.delete("a") } == .notImplemented)
  }
}
