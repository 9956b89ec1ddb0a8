import Documents
import FoundationEssentials

extension RemoteStore.Find {
  /// Returns the documents as values of a type.
  ///
  ///     let people = store.find(.field("age", .greater(17))).decoded(as: Person.self)
  ///     for try await person in people { print(person.name) }
  ///
  /// The type sees the members of each document, and `_id` and `_rev`; with the query's `fields`, only those.
  /// - Parameter decoder: A decoder that must not be changed afterwards.
  public func decoded<T: Decodable & Sendable>(as type: T.Type, decoder: JSONDecoder = JSONDecoder()) -> Decoded<T> {
    Decoded(documents: self, decoder: decoder)
  }

  /// The documents that a query finds, as values of a type. The sequence throws the errors of the find, and those of
  /// the decoder.
  public struct Decoded<Element: Decodable & Sendable>: AsyncSequence, Sendable {
    private let documents: RemoteStore.Find
    private let decoder: JSONDecoder

    fileprivate init(documents: RemoteStore.Find, decoder: JSONDecoder) {
      self.documents = documents
      self.decoder = decoder
    }

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(documents: documents.makeAsyncIterator(), decoder: decoder)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private var documents: RemoteStore.Find.AsyncIterator
      private let decoder: JSONDecoder

      fileprivate init(documents: RemoteStore.Find.AsyncIterator, decoder: JSONDecoder) {
        self.documents = documents
        self.decoder = decoder
      }

      /// What to set as the bookmark of the same query to find the documents that follow; nil if there are none, and
      /// before `next` has returned nil.
      public var bookmark: String? { documents.bookmark }
      /// What finding the documents took; nil before `next` has returned nil.
      public var statistics: DocumentStatistics? { documents.statistics }

      public mutating func next() async throws -> Element? { try await next(isolation: nil) }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
        guard let document = try await documents.next(isolation: actor) else { return nil }
        return try decoder.decode(Element.self, from: Data(document.json()))
      }
    }
  }
}
