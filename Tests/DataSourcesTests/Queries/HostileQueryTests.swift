import DataSources
import Documents
import Testing

/// Queries with extreme values. Each one returns a result or throws one of the library's own errors, and stored entries
/// stay intact.
@Suite struct HostileQueryTests {
  static let queries: [any Query] = [
    PaginationOffsetLimitQuery(offset: .max, limit: .max), PaginationOffsetLimitQuery(offset: 0, limit: .max),
    PaginationOffsetLimitQuery(offset: .min, limit: .min), PaginationOffsetLimitQuery(offset: .max, limit: 0),
    PaginationCursorQuery(limit: .max), PaginationCursorQuery(limit: .min),
    PaginationCursorQuery(after: "", limit: 1), PaginationCursorQuery(after: "\u{10FFFF}", limit: .max),
    PaginationCursorQuery(after: String(repeating: "k", count: 100_000), limit: 1),
    IdQuery(""), IdQuery(String(repeating: "é", count: 100_000)), IdQuery(Int.min), IdQuery(UInt64.max),
    IdsQuery([""]), IdsQuery([String]()), IdsQuery(Array(repeating: "a", count: 2_000)),
    IdsQuery(["a", ""], missing: .skip),
    AllObjectsQuery(), VoidQuery(), ObjectQuery(""), ObjectsQuery<Int>([]),
    SelectorQuery(.all), SelectorQuery(.all, skip: .max, limit: .max), SelectorQuery(.all, skip: .min, limit: .min),
    SelectorQuery(.all, limit: 0), SelectorQuery(.text("a") && .text("b")),
    SelectorQuery(DocumentQuery(fields: ["title"])), SelectorQuery(DocumentQuery(bookmark: "b")),
  ]

  @Test(arguments: Subject.all)
  func `hostile queries don't crash the process`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      for query in Self.queries {
        try await source.put("kept", forId: "k")
        for call in Self.calls(source, query) {
          do { try await call() } catch { #expect(error is DataSourceError, "\(query)") }
        }
        try await source.put("kept", forId: "k")
        #expect(try await source.get("k") == "kept")
      }
    }
  }

  static func calls(_ source: AnyDataSource<Item>, _ query: any Query) -> [() async throws -> Void] {
    [
      { _ = try await source.get(query) }, { _ = try await source.getAll(query) },
      { _ = try await source.put(nil, in: query) }, { _ = try await source.put("x", in: query) },
      { _ = try await source.putAll([], in: query) }, { _ = try await source.putAll(["x", "y"], in: query) },
      { try await source.delete(query) }, { try await source.deleteAll(query) },
    ]
  }
}
