import DataSources
import Testing

/// The code of "Composing".
@Suite struct ComposingSnippets {
  @Test func `sources are made of sources`() async throws {
    let temporary = try TemporaryDirectory()
    let directory = temporary.url
    let files = DeviceStorageDataSource<Book>(directory: directory, .prefix("books"))
    let cached = TimedCacheDataSource(files, lifetime: .seconds(60))
    let books = RetryDataSource(cached, RetryRule(retryCount: 2))
    // The next snippet.
    let titles = DataSourceMapper(books, toOut: { $0.title }, toIn: { Book(title: $0) })
    try await titles.put("The Baron in the Trees", forId: "baron")
    // The last snippet.
    let readOnly = DataSourceAssembler(get: AnyGetDataSource(files))
    // The page ends.
    #expect(try await readOnly.get("baron").title == "The Baron in the Trees")
    #expect(await failure { try await readOnly.delete("baron") } == .notImplemented)
  }

  @Test func `a main source and a cache`() async throws {
    let main = InMemoryDataSource<Book>()
    try await main.put(Book(title: "The Baron in the Trees"), forId: "baron")
    let repository = CacheRepository(
      main: main, cache: InMemoryDataSource<Book>(), validity: Validation { !$0.title.isEmpty })
    let book = try await repository.get("baron")
    let fresh = try await repository.get("baron", operation: .mainSync)
    let whatever = try await repository.get("baron", operation: .cacheSync(fallback: true))
    #expect([book, fresh, whatever].allSatisfy { $0.title == "The Baron in the Trees" })
  }
}
