import DataSources
import Documents
import TypedQueries

/// Running typed requests on the server.
///
/// Besides the errors of `find(_:using:)`, these calls throw what `ServerRequest.query` throws, before anything is sent, and
/// the errors of the type's decoder. A type sees the members of a document, and `_id` and `_rev`.
extension RemoteStore {
  /// Returns the documents that a request asks for, as the store was at one point in time.
  public func fetch<T>(_ request: TypedQueries.Request<T>) async throws -> [T] {
    try await find(request.query).result().documents.map { try Fetched<T>($0).decode() }
  }

  /// Returns one field of the documents that a request asks for. The server sends nothing else of them.
  public func fetch<T, Value: Decodable>(_ request: TypedQueries.Request<T>, _ field: KeyPath<T, Value>) async throws
    -> [Value]
  {
    let (query, path) = try request.query(for: field)
    return try await find(query).result().documents.map { try request.value(Value.self, at: path, of: $0) }
  }

  /// Returns the first document that a request asks for; nil if there is none.
  public func fetchOne<T>(_ request: TypedQueries.Request<T>) async throws -> T? {
    var query = try request.query
    query.limit = min(query.limit ?? 1, 1)
    return try await find(query).result().documents.first.map { try Fetched<T>($0).decode() }
  }

  /// Returns what is computed from the documents of a request. The server computes it, unless the request has a limit
  /// or an offset.
  public func fetch<T, Value>(_ aggregation: Aggregation<T, Value>) async throws -> Value {
    let aggregate = try aggregation.aggregate
    var query = try aggregation.request.query
    let groups: [DocumentGroup]
    if aggregation.request.isUnlimited {
      groups = try await self.groups(of: query.selector, by: [], computing: [aggregate])
    } else {
      query.fields = aggregate.path.map { [$0] } ?? []
      groups = try await find(query).result().documents.groups(by: [], computing: [aggregate])
    }
    return try aggregation.value(groups.first?.values.first ?? nil)
  }

  /// Returns the number of documents that a request asks for.
  public func count<T>(of request: TypedQueries.Request<T>) async throws -> Int {
    request.count(ofMatching: Int(clamping: try await count(request.query.selector)))
  }

  /// Returns the document of a key; nil if there is none.
  public func find<T: Queryable>(_ type: T.Type, id: some StableKey) async throws -> T? {
    guard let entry = try await get(id.stableKey), let bytes = entry.bytes else { return nil }
    return try Fetched<T>(Document(bytes, id: entry.key, revision: entry.revision)).decode()
  }

  /// Returns the documents that a request asks for, page by page. Each page is a call of its own, which begins where the
  /// last one ended, whatever was written meanwhile.
  /// - Parameter size: The maximum number of documents of a page, at least 1.
  public func pages<T>(of request: TypedQueries.Request<T>, size: Int = 100) -> RequestPages<T> {
    RequestPages(store: self, request: request, size: max(1, size))
  }

  /// Returns the documents that a request asks for, and then each change of this set as it happens; see
  /// `observe(_:as:decoder:)`.
  ///
  ///     for try await change in try people.observe(Person.all.where(\Person.age > 17)) {
  ///       switch change {
  ///       case .initial(let people): print(people.count)
  ///       case .inserted(let person), .updated(let person): print(person.key, person.value.name)
  ///       case .removed(let key): print("no longer", key)
  ///       }
  ///     }
  /// - Throws: What `ServerRequest.query` throws; `FilterError` if the request has an order, a limit or an offset.
  public func observe<T>(_ request: TypedQueries.Request<T>) throws -> Observation<T> {
    observe(try request.unorderedSelector, as: T.self, decoder: T.decoder)
  }

  /// Changes fields of all documents that a request asks for, in one step.
  /// - Throws: `FilterError` if the request has a limit or an offset; as `update(where:_:dryRun:)`.
  @discardableResult
  public func update<T>(_ request: TypedQueries.Request<T>, _ changes: FieldChange<T>...) async throws
    -> DocumentChanges
  {
    try await update(where: request.unlimitedSelector, DocumentUpdate(changes))
  }

  /// Deletes all documents that a request asks for, in one step.
  /// - Throws: `FilterError` if the request has a limit or an offset; as `delete(where:dryRun:)`.
  @discardableResult
  public func delete<T>(_ request: TypedQueries.Request<T>) async throws -> DocumentChanges {
    try await delete(where: request.unlimitedSelector)
  }

  /// The documents that a request asks for, page by page. Each page is requested when it is needed.
  public struct RequestPages<T: Queryable>: AsyncSequence, Sendable {
    public typealias Element = [T]
    private let store: RemoteStore
    private let request: TypedQueries.Request<T>
    private let size: Int

    fileprivate init(store: RemoteStore, request: TypedQueries.Request<T>, size: Int) {
      self.store = store
      self.request = request
      self.size = size
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(store: store, request: request, size: size) }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private let store: RemoteStore
      private let request: TypedQueries.Request<T>
      private let size: Int
      /// The number of documents that were returned.
      private var count = 0
      private var bookmark: String?
      private var isFinished = false

      fileprivate init(store: RemoteStore, request: TypedQueries.Request<T>, size: Int) {
        self.store = store
        self.request = request
        self.size = size
      }

      public mutating func next() async throws -> [T]? { try await next(isolation: nil) }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws -> [T]? {
        guard !isFinished else { return nil }
        isFinished = true
        var query = try request.query
        let rest = query.limit.map { $0 - count } ?? .max
        query.limit = Swift.min(size, rest)
        query.bookmark = bookmark
        let result = try await store.find(query).result()
        bookmark = result.bookmark
        count += result.documents.count
        isFinished = bookmark == nil || rest <= size
        return result.documents.isEmpty ? nil : try result.documents.map { try Fetched<T>($0).decode() }
      }
    }
  }
}
