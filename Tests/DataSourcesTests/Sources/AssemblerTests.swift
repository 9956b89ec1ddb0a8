import DataSources
import Testing

@Suite struct AssemblerTests {
  @Test func `an assembler's missing parts have nothing`() async throws {
    let source = InMemoryDataSource<Int>()
    try await source.put(1, forId: "a")
    let readable = DataSourceAssembler(get: source)
    #expect(try await readable.get("a") == 1)
    #expect(await failure { try await readable.put(2, forId: "a") } == .notImplemented)
    #expect(await failure { try await readable.delete("a") } == .notImplemented)
  }
}
