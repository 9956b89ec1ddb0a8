import DataSources
import Documents
import Testing

/// What every key-value source does beyond the six operations, and in the same way.
@Suite struct KeyValueConformanceTests {
  // MARK: - Reading

  @Test(arguments: KeyValueSubject.all)
  func `61: a prefix finds, counts and removes the entries whose keys begin with it`(
    _ subject: KeyValueSubject
  ) async throws {
    try await subject.run { source async throws in
      for key in ["a", "ab", "ab1", "ab2", "ac", "b", "é", "e\u{301}x"] { try await source.put(Item(key), forId: key) }
      try await source.putAll(["x", "y"], forId: "abl")
      #expect(try await source.getAll(PrefixQuery("ab")) == ["ab", "ab1", "ab2", "x", "y"])
      #expect(try await source.getAll(PrefixQuery("e")) == ["e\u{301}x"])
      #expect(try await source.getAll(PrefixQuery("abz")) == [])
      #expect(try await source.getAll(PrefixQuery("")).count == 10)
      #expect(try await source.keys(prefix: "ab") == ["ab", "ab1", "ab2", "abl"])
      #expect(try await source.keys() == ["a", "ab", "ab1", "ab2", "abl", "ac", "b", "e\u{301}x", "é"])
      #expect(try await source.count(prefix: "ab") == 4)
      #expect(try await source.count() == 9)
      #expect(await failure { try await source.get(PrefixQuery("ab")) } == .queryNotSupported)
      #expect(await failure { try await source.put("x", in: PrefixQuery("ab")) } == .queryNotSupported)
      #expect(await failure { try await source.putAll(["x"], in: PrefixQuery("ab")) } == .queryNotSupported)
      try await source.delete(PrefixQuery("ab"))
      try await source.deleteAll(PrefixQuery("nothing"))
      #expect(try await source.keys() == ["a", "ac", "b", "e\u{301}x", "é"])
      try await source.delete(PrefixQuery(""))
      #expect(try await source.count() == 0)
    }
  }

  @Test(arguments: KeyValueSubject.all)
  func `62: pages have keys, and the query for the next page`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      let keys = (0..<5).map { "k\($0)" }
      for key in keys + ["a", "z"] { try await source.put(Item(key), forId: key) }
      try await source.putAll([], forId: "k9")
      var pages: [[String]] = []
      var query: PaginationCursorQuery? = PaginationCursorQuery(limit: 2, prefix: "k")
      while let next = query {
        let page = try await source.page(next)
        pages.append(page.entries.map(\.key))
        query = page.next
        try await source.delete(page.entries[0].key)
      }
      #expect(pages == [["k0", "k1"], ["k2", "k3"], ["k4", "k9"]])
      #expect(try await source.page(PaginationCursorQuery(limit: .max)).next == nil)
      #expect(try await source.page(PaginationCursorQuery(after: "m", limit: 1)).entries.map(\.value) == [.single("z")])
      #expect(
        try await source.page(PaginationCursorQuery(after: "a", limit: 1, prefix: "k9")).entries.map(\.key) == ["k9"])
      #expect(try await source.page(PaginationCursorQuery(after: "z", limit: 1, prefix: "k")).entries == [])
      #expect(try await source.getAll(PaginationCursorQuery(after: "k1", limit: 9, prefix: "k")) == ["k3"])
      #expect(await failure { try await source.page(PaginationCursorQuery(limit: 0)) } == .illegalArgument)
    }
  }

  @Test(arguments: KeyValueSubject.all)
  func `63: a missing value is nil`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      try await source.put("one", forId: "a")
      try await source.putAll(["x"], forId: "l")
      #expect(try await source.getIfPresent("a") == "one")
      #expect(try await source.getIfPresent("l") == nil)
      #expect(try await source.getIfPresent(IdQuery("b")) == nil)
      #expect(try await source.getIfPresent(SelectorQuery(.field("title", .equal("two")))) == nil)
      #expect(await failure { try await source.getIfPresent("") } == .illegalArgument)
      #expect(await failure { try await source.getIfPresent(VoidQuery()) } == .queryNotSupported)
      #expect(try await source.contains("a"))
      #expect(try await source.contains("l"))
      #expect(try await !source.contains("b"))
      #expect(try await source.entry(forId: "l")?.value == .list(["x"]))
      #expect(try await source.entry(forId: "b") == nil)
    }
  }

  // MARK: - Writing

  @Test(arguments: KeyValueSubject.all.filter(\.hasRevisions))
  func `64: a write can depend on the current entry`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      let first = try await source.put("one", forId: "a", if: .absent)
      #expect(try await source.entry(forId: "a") == KeyValueEntry(key: "a", value: .single("one"), revision: first))
      #expect(await failure { try await source.put("two", forId: "a", if: .absent) } == .conflict)
      let second = try await source.put("two", forId: "a", if: .revision(first))
      #expect(second > first)
      #expect(await failure { try await source.put("three", forId: "a", if: .revision(first)) } == .conflict)
      #expect(await failure { try await source.put("b", forId: "b", if: .revision(first)) } == .conflict)
      #expect(await failure { try await source.delete("a", ifRevision: first) } == .conflict)
      #expect(await failure { try await source.delete("b", ifRevision: first) } == .conflict)
      #expect(try await source.get("a") == "two")
      try await source.put("three", forId: "a")
      let third = try #require(try await source.page(PaginationCursorQuery(limit: 1)).entries.first)
      #expect(third.revision > second)
      try await source.delete("a", ifRevision: third.revision)
      // A revision is never used again.
      let fourth = try await source.putAll(["x"], forId: "a", if: .absent)
      #expect(fourth > third.revision)
      #expect(await failure { try await source.put("x", forId: "", if: .absent) } == .illegalArgument)
    }
  }

  @Test(arguments: KeyValueSubject.all.filter(\.hasRevisions))
  func `65: concurrent updates don't overwrite each other`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      try await withThrowingTaskGroup { group in
        for _ in 0..<4 {
          group.addTask {
            for _ in 0..<10 {
              try await source.update("n") { value in value = Item("n", price: (value?.price ?? 0) + 1) }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await source.get("n").price == 40)
      #expect(try await source.update("n") { value in value.take()?.price } == 40)
      #expect(try await !source.contains("n"))
      #expect(try await source.update("n") { value in value == nil })
      await #expect(throws: UpdateError.self) { try await source.update("n") { _ in throw UpdateError() } }
      try await source.putAll(["x"], forId: "l")
      #expect(try await source.update("l") { value in value == nil })
      #expect(try await source.getAll("l") == ["x"])
      try await source.put("lasting", forId: "e", expiresIn: .seconds(3_600))
      try await source.update("e") { $0 = "changed" }
      #expect(try await source.entry(forId: "e")?.expiresIn ?? .zero > .seconds(3_000))
    }
  }

  @Test(arguments: KeyValueSubject.all.filter(\.hasRevisions))
  func `66: a batch is applied completely or not at all`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      let a = try await source.put("a", forId: "a", if: .absent)
      let revision = try await source.apply { batch in
        batch.check("a", hasRevision: a)
        batch.checkAbsent("b")
        batch.put("b1", forId: "b")
        batch.put("b2", forId: "b")
        batch.putAll(["x", "y"], forId: "l")
        batch.delete("a")
        batch.delete("never")
      }
      #expect(try await source.getAll(AllObjectsQuery()) == ["b2", "x", "y"])
      let entries = try await source.page(PaginationCursorQuery(limit: 9)).entries
      #expect(entries.map(\.revision) == [revision, revision])
      let failed = await failure {
        try await source.apply { batch in
          batch.put("c", forId: "c")
          batch.delete("b")
          batch.put("l", forId: "l", if: .absent)
        }
      }
      #expect(failed == .conflict)
      #expect(try await source.keys() == ["b", "l"])
      #expect(try await source.apply { $0.checkAbsent("c") } == nil)
      #expect(try await source.apply { $0.delete("c") } == nil)
      #expect(try await source.apply { _ in } == nil)
      #expect(await failure { try await source.apply { $0.put("x", forId: "") } } == .illegalArgument)
    }
  }

  @Test(arguments: KeyValueSubject.all.filter(\.hasRevisions))
  func `67: entries expire`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      try await source.put("long", forId: "long", expiresIn: .seconds(3_600))
      try await source.put("short", forId: "short", expiresIn: .milliseconds(5))
      try await source.putAll(["x"], forId: "list", expiresIn: .milliseconds(5))
      while try await source.getIfPresent("short") != nil { try await Task.sleep(for: .milliseconds(5)) }
      while try await source.contains("list") { try await Task.sleep(for: .milliseconds(5)) }
      #expect(try await source.keys() == ["long"])
      #expect(try await source.count() == 1)
      #expect(try await source.getAll(AllObjectsQuery()) == ["long"])
      #expect(try await source.getAll(SelectorQuery(.and([]))) == ["long"])
      let lifetime = try #require(try await source.entry(forId: "long")?.expiresIn)
      #expect(lifetime > .seconds(3_000) && lifetime <= .seconds(3_600))
      try await source.put("again", forId: "short", if: .absent)
      try await source.put("kept", forId: "long")
      #expect(try await source.page(PaginationCursorQuery(limit: 9)).entries.map(\.expiresIn) == [nil, nil])
      #expect(await failure { try await source.put("x", forId: "x", expiresIn: .zero) } == .illegalArgument)
    }
  }

  @Test(arguments: KeyValueSubject.all.filter { !$0.hasRevisions })
  func `68: a source without revisions refuses conditions, and writes nothing`(_ subject: KeyValueSubject) async throws
  {
    try await subject.run { source async throws in
      #expect(await failure { try await source.put("x", forId: "a", if: .absent) } == .notImplemented)
      #expect(await failure { try await source.put("x", forId: "a", expiresIn: .seconds(1)) } == .notImplemented)
      #expect(await failure { try await source.update("a") { $0 = "x" } } == .notImplemented)
      #expect(await failure { try await source.apply { $0.delete("a") } } == .notImplemented)
      #expect(try await source.count() == 0)
    }
  }

  // MARK: - Watching

  @Test(arguments: KeyValueSubject.all.filter(\.canBeWatched))
  func `69: changes are reported in their order, each once`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      try await source.put("before", forId: "a1")
      var all = try await source.changes().makeAsyncIterator()
      var some = try await source.changes(prefix: "a").makeAsyncIterator()
      try await source.put("one", forId: "a1")
      try await source.put("two", forId: "b")
      try await source.delete(["never", "a1"])
      let revision = try await source.apply { batch in
        batch.putAll(["x"], forId: "a2", expiresIn: .seconds(3_600))
        batch.delete("b")
      }
      try await source.delete(AllObjectsQuery())
      var changes: [KeyValueChange<Item>] = []
      for _ in 0..<6 { changes.append(try #require(try await all.next())) }
      #expect(changes.map(\.summary) == ["a1: one", "b: two", "-a1", "a2: [x]", "-b", "-"])
      if case .put(let entry) = changes[3] {
        #expect(entry.revision == revision && entry.expiresIn ?? .zero > .seconds(3_000))
      }
      changes = []
      for _ in 0..<4 { changes.append(try #require(try await some.next())) }
      #expect(changes.map(\.summary) == ["a1: one", "-a1", "a2: [x]", "-"])
    }
  }

  @Test(arguments: KeyValueSubject.all.filter(\.canBeWatched))
  func `70: a watch ends when its task is cancelled`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      let changes = try await source.changes()
      let watcher = Task { for try await _ in changes {} }
      watcher.cancel()
      await #expect(throws: CancellationError.self) { try await watcher.value }
      try await source.put("one", forId: "a")
    }
  }

  @Test(arguments: KeyValueSubject.all.filter { !$0.canBeWatched })
  func `71: watching a source that can't be watched is an error`(_ subject: KeyValueSubject) async throws {
    try await subject.run { source async throws in
      #expect(await failure { try await source.changes() } == .notImplemented)
    }
  }

  private struct UpdateError: Error {}
}

extension KeyValueChange<Item> {
  fileprivate var summary: String {
    switch self {
    case .put(let entry):
      switch entry.value {
      case .single(let item): "\(entry.key): \(item.title)"
      case .list(let items): "\(entry.key): [\(items.map(\.title).joined(separator: ", "))]"
      }
    case .delete(let key): "-\(key)"
    case .deleteAll: "-"
    }
  }
}
