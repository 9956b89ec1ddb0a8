import DataSources
import Testing

/// The calls of key-value sources that take keys, not queries.
@Suite struct KeyValueKeyTests {
  @Test(arguments: KeyValueSubject.all)
  func `the calls for entries check keys and numbers as queries do`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      let good = KeyValueEntry(key: "a", value: StoredValue.single(Item("a")))
      for key in ["", String(repeating: "k", count: 4_097)] {
        let bad = KeyValueEntry(key: key, value: StoredValue.single(Item("a")))
        #expect(await failure { try await source.entry(of: key) } == .illegalArgument)
        #expect(await failure { try await source.entries(of: ["a", key]) } == .illegalArgument)
        #expect(await failure { try await source.store([good, bad]) } == .illegalArgument)
        #expect(await failure { try await source.remove(["a", key]) } == .illegalArgument)
        #expect(await failure { try await source.getEach(["a", key]) } == .illegalArgument)
      }
      let long = String(repeating: "k", count: 4_097)
      let ranges: [EntryRange] = [
        .offset(-1, limit: 1), .offset(0, limit: -1), .after(nil, limit: -1), .after(long, limit: 1),
      ]
      for range in ranges {
        #expect(await failure { try await source.entries(in: range) } == .illegalArgument)
      }
      try await source.store([good])
      #expect(try await source.entries(in: .after("", limit: 1)).map(\.key) == ["a"])
      #expect(try await source.keys() == ["a"])
    }
  }
}
