import Documents
import Wire

extension RemoteStore {
  /// Returns the documents that a query finds, in its order, as the store was at one point in time. A document is an
  /// entry whose value is single and a JSON object; other entries match nothing.
  ///
  ///     let adults = store.find(DocumentQuery(.field("age", .greater(17)), sort: [.ascending("name")], limit: 20))
  ///     for try await document in adults { print(try document.value()) }
  ///
  /// The server finds the documents, and sends them as they are consumed, as in `all`. The store's timeout applies to
  /// the wait for the first document, and to each wait for more. A server that can't find documents sends all entries,
  /// and the client finds the documents among them.
  ///
  /// Besides the errors of all calls, the sequence throws `illegalArgument` if the bookmark isn't one of this query, if
  /// the selector exceeds a limit or needs a text index, if `skip` or `limit` is negative, or if the index doesn't exist,
  /// isn't ready or can't find the documents; `queryStopped` if finding the documents exceeds a limit of the server; and
  /// `tooManyRequests` if the server is finding too many others.
  /// - Parameter index: The name of the index to use; nil to let the server choose, which is best nearly always.
  public func find(_ query: DocumentQuery, using index: String? = nil) -> Find {
    Find(store: self, query: query, index: index)
  }

  /// Returns the documents that match a selector, in the order of their keys' bytes; see `find(_:using:)` for a query.
  public func find(_ selector: Selector) -> Find { find(DocumentQuery(selector)) }

  /// Returns the number of documents that match a selector; see `find(_:using:)` for a query.
  /// - Parameter index: The name of the index to use; nil to let the server choose.
  public func count(_ selector: Selector, using index: String? = nil) async throws(LarderError) -> UInt64 {
    try await countWithStatistics(selector, using: index).count
  }

  /// Returns the number of documents that match a selector, and what counting them took.
  package func countWithStatistics(
    _ selector: Selector, using index: String? = nil
  ) async throws(LarderError) -> (count: UInt64, statistics: DocumentStatistics) {
    let body: [UInt8]
    let request = try FindDocumentsRequest(counting: selector, using: index, time: findTime)
    do throws(LarderError) {
      body = try await stream(request, deadline: findDeadline).body
    } catch {
      guard error.kind == .unknownOperation, index == nil else { throw error }
      let (result, count) = try await findAmongAll(DocumentQuery(selector, limit: 0), isOrdered: false)
      return (UInt64(count), result.statistics)
    }
    guard let result = unsafe FindResult(body.span.bytes, at: 0) else { throw .malformedReply }
    return (result.found, DocumentStatistics(result, returnedDocumentCount: 0))
  }

  /// Finds documents among all entries, for a server that can't find documents.
  /// - Parameter isOrdered: Whether a query with a limit and no sort is finished when it has found enough documents.
  /// - Returns: What the query finds, and the number of matches among the entries that were examined.
  private func findAmongAll(
    _ query: DocumentQuery, isOrdered: Bool
  ) async throws(LarderError) -> (result: DocumentResult, matchCount: Int) {
    var finder: DocumentFinder
    do throws(SelectorError) { finder = try DocumentFinder(query, isOrdered: isOrdered) } catch {
      throw LarderError(.illegalArgument, outcome: .rejected, "\(error)")
    }
    var matchCount = 0
    var entries = all().makeAsyncIterator()
    while !finder.isFinished, let entry = try await entries.next() {
      guard let bytes = entry.bytes else { continue }
      if finder.examine(Document(bytes, id: entry.key, revision: entry.revision)) { matchCount += 1 }
    }
    return (finder.result(), matchCount)
  }

  /// The documents that a query finds, streamed.
  ///
  /// Each iteration makes the call again. `result` collects the documents; an iterator has the bookmark and the
  /// statistics after the last document.
  public struct Find: AsyncSequence, Sendable {
    public typealias Element = Document
    private let store: RemoteStore
    private let query: DocumentQuery
    private let index: String?

    fileprivate init(store: RemoteStore, query: DocumentQuery, index: String?) {
      self.store = store
      self.query = query
      self.index = index
    }

    /// Returns all documents, with the bookmark and the statistics.
    public func result() async throws(LarderError) -> DocumentResult {
      var iterator = makeAsyncIterator()
      var documents: [Document] = []
      while let document = try await iterator.next() { documents.append(document) }
      guard let statistics = iterator.statistics else { throw .malformedReply }
      return DocumentResult(documents: documents, bookmark: iterator.bookmark, statistics: statistics)
    }

    /// Finds the documents without returning them, and returns how the server did that.
    /// - Throws: The errors of the sequence; `unknownOperation` if the server can't find documents.
    public func explanation() async throws(LarderError) -> FindExplanation {
      let request = try FindDocumentsRequest(query, using: index, isExplained: true, time: store.findTime)
      let body = try await store.stream(request, deadline: store.findDeadline).body
      guard let result = unsafe FindResult(body.span.bytes, at: 0), let explanation = FindExplanation(result) else {
        throw .malformedReply
      }
      return explanation
    }

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(store: store, query: query, index: index)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      /// What to set as the bookmark of the same query to find the documents that follow; nil if there are none, and
      /// before `next` has returned nil.
      public private(set) var bookmark: String?
      /// What finding the documents took; nil before `next` has returned nil.
      public private(set) var statistics: DocumentStatistics?
      private let store: RemoteStore
      private let query: DocumentQuery
      private let index: String?
      private var phase = Phase.initial
      /// The body of the current frame, and the offset of the next record in it.
      private var body: [UInt8] = []
      private var offset = 0
      private var returnedCount = 0

      private enum Phase {
        case initial
        case streaming(ReplyStreamReader)
        /// The current frame is the last one.
        case ending
        /// The client has found the documents, of which these remain.
        case found(ArraySlice<Document>, DocumentResult)
        case finished
      }

      fileprivate init(store: RemoteStore, query: DocumentQuery, index: String?) {
        self.store = store
        self.query = query
        self.index = index
      }

      public mutating func next() async throws(LarderError) -> Document? {
        try await next(isolation: nil)
      }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> Document? {
        while offset == body.count {
          switch phase {
          case .initial: try await begin(isolation: actor)
          case .streaming(let stream): try await receive(from: stream, isolation: actor)
          case .ending:
            phase = .finished
            throw .malformedReply
          case .found(let documents, let result): return next(of: documents, result)
          case .finished: return nil
          }
        }
        return try nextInFrame()
      }

      /// Sends the request and receives the first frame, or finds the documents among all entries if the server
      /// can't find documents.
      private mutating func begin(isolation actor: isolated (any Actor)?) async throws(LarderError) {
        phase = .finished
        let request = try FindDocumentsRequest(query, using: index, time: store.findTime)
        do throws(LarderError) {
          let (first, rest) = try await store.stream(request, deadline: store.findDeadline)
          body = first
          phase = rest.map { .streaming($0) } ?? .ending
        } catch {
          guard error.kind == .unknownOperation, index == nil else { throw error }
          let result = try await store.findAmongAll(query, isOrdered: true).result
          phase = .found(result.documents[...], result)
        }
      }

      private mutating func receive(
        from stream: ReplyStreamReader, isolation actor: isolated (any Actor)?
      ) async throws(LarderError) {
        phase = .finished
        let (next, hasMore) = try await stream.next(deadline: store.deadline.instant)
        offset = 0
        body = next
        phase = hasMore ? .streaming(stream) : .ending
      }

      /// Returns the next document that the client has found.
      private mutating func next(of documents: ArraySlice<Document>, _ result: DocumentResult) -> Document? {
        guard let document = documents.first else {
          (bookmark, statistics) = (result.bookmark, result.statistics)
          phase = .finished
          return nil
        }
        phase = .found(documents.dropFirst(), result)
        return document
      }

      /// Returns the next document of the current frame, or nil if the result of the whole find follows.
      private mutating func nextInFrame() throws(LarderError) -> Document? {
        if let (document, end) = Self.document(in: body, at: offset, isProjection: !query.fields.isEmpty) {
          offset = end
          returnedCount += 1
          return document
        }
        let result = unsafe FindResult(body.span.bytes, at: offset)
        offset = body.count
        guard case .ending = phase, let result else {
          phase = .finished
          throw .malformedReply
        }
        phase = .finished
        bookmark = result.text.isEmpty ? nil : result.text
        statistics = DocumentStatistics(result, returnedDocumentCount: returnedCount)
        return nil
      }

      /// Decodes a document and the offset of its end, or returns nil if there is something else.
      private static func document(in body: [UInt8], at offset: Int, isProjection: Bool) -> (Document, end: Int)? {
        let bytes = unsafe body.span.bytes
        guard let record = EntryRecord(bytes, at: offset), record.kind == .single else { return nil }
        let (text, id) = (bytes.extracting(record.value).toArray(), bytes.extracting(record.key).toString())
        let document =
          isProjection
          ? Document(projection: text, id: id, revision: record.revision)
          : Document(text, id: id, revision: record.revision)
        return (document, record.end)
      }
    }
  }
}

/// How a server finds the documents of a query.
public struct FindExplanation: Sendable {
  /// The plan of the server, for people and tools: `Protocol/wire.md` §6.7.
  public let json: JSONValue
  /// What finding the documents took. As many documents as `returnedDocumentCount` would have been returned.
  public let statistics: DocumentStatistics

  init?(_ result: FindResult) {
    guard let json = try? JSONValue(parsing: result.text) else { return nil }
    self.json = json
    statistics = DocumentStatistics(result, returnedDocumentCount: Int(clamping: result.found))
  }
}

extension DocumentStatistics {
  init(_ result: FindResult, returnedDocumentCount: Int) {
    self.init(
      examinedDocumentCount: Int(clamping: result.examinedDocuments),
      examinedKeyCount: Int(clamping: result.examinedKeys), returnedDocumentCount: returnedDocumentCount,
      duration: .nanoseconds(Int64(clamping: result.nanoseconds)))
  }
}
