import Wire

extension RemoteStore {
  /// A page of entries in the order of their keys' bytes, as the store was at one moment.
  /// - Parameters:
  ///   - offset: how many entries are passed over first. An offset past the end gives none.
  ///   - limit: how many entries follow at most.
  ///   - prefix: only keys that begin with it count.
  ///   - after: only keys past this one count, which need not be in the store: greater ones, or with `reverse` smaller ones.
  ///   - keysOnly: leave the values out; they are empty then.
  /// - Complexity: O(log n + limit) on the server, at any offset.
  public func page(
    offset: UInt64 = 0, limit: Int = 100, prefix: String = "", after: String? = nil, reverse: Bool = false,
    keysOnly: Bool = false
  ) async throws(LarderError) -> [Entry] {
    let range = ScanRange(prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
    return try await page(range, offset: offset, limit: limit)
  }

  func page(_ range: ScanRange, offset: UInt64, limit: Int) async throws(LarderError) -> [Entry] {
    guard let limit = UInt32(exactly: limit) else {
      throw LarderError(.illegalArgument, outcome: .rejected, "a limit of \(limit); it can be 0 to \(UInt32.max)")
    }
    var entries: [Entry] = []
    let request = PageRequest(range: range, limit: limit, offset: offset)
    try await readAnswer(request) { (body, record) throws(LarderError) in
      guard let entry = Entry(record, in: body, keysOnly: range.keysOnly), entries.count < Int(limit) else {
        throw .malformedReply
      }
      entries.append(entry)
    }
    return entries
  }

  /// All entries, page by page. Each page is a call of its own: entries that are written meanwhile show if their keys are still ahead.
  /// - Parameter pageSize: how many entries a page has at most, at least 1.
  public func pages(
    of pageSize: Int = 100, prefix: String = "", after: String? = nil, reverse: Bool = false, keysOnly: Bool = false
  ) -> Pages {
    let range = ScanRange(prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
    return Pages(store: self, range: range, pageSize: max(1, pageSize))
  }

  /// Pages of entries, each asked for when the one before has been used.
  public struct Pages: AsyncSequence, Sendable {
    public typealias Element = [Entry]
    let store: RemoteStore
    let range: ScanRange
    let pageSize: Int

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(store: store, range: range, pageSize: pageSize)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      let store: RemoteStore
      var range: ScanRange
      let pageSize: Int
      var isOver = false

      public mutating func next() async throws(LarderError) -> [Entry]? {
        try await next(isolation: nil)
      }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> [Entry]? {
        guard !isOver else { return nil }
        let page = try await store.page(range, offset: 0, limit: pageSize)
        isOver = page.count < pageSize
        range.after = page.last?.key
        return page.isEmpty ? nil : page
      }
    }
  }
}
