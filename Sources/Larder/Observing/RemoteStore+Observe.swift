import Documents
import FoundationEssentials

extension RemoteStore {
  /// Returns the documents that match a selector, and then each change of this set as it happens.
  ///
  ///     for try await change in store.observe(.field("age", .greater(17))) {
  ///       switch change {
  ///       case .initial(let people): print(people.count)
  ///       case .inserted(let person), .updated(let person): print(person.key, try person.value.value())
  ///       case .removed(let key): print("no longer", key)
  ///       }
  ///     }
  ///
  /// The first element has all documents that match. Each further one is a change, in the order of the store's
  /// revisions: a document that begins to match is inserted, one that is written and matches still is updated, and one
  /// that stops to match, is deleted, is evicted or expires is removed. Applied one after the other, the changes always
  /// make the set that matches in the store.
  ///
  /// If the connection is lost, the observation continues as soon as there is a new one, however long that takes,
  /// without leaving out or repeating a change. Where the server has not kept all changes, because it was restarted or
  /// the consumer was too slow, the observation reads the documents again and returns the differences. An expired
  /// document is removed up to a quarter of a second after its expiry, so that a write shortly before it is not
  /// mistaken; also while there is no connection.
  ///
  /// The server finds the first documents with its indexes. It then sends all changes of the store, among which the
  /// client finds those of the selector. The client keeps the key, revision and expiry of each document that matches,
  /// not the document itself.
  ///
  /// The sequence throws the errors of `find`, `storeUnknown` if the store is dropped, `unknownOperation` if the server
  /// can't find documents, and `cancelled`. It throws other errors of connections only before the first element.
  public func observe(_ selector: Selector) -> Observation<Document> {
    Observation(store: self, selector: selector) { $0 }
  }

  /// Returns the documents that match a selector as values of a type, and then each change of this set as it happens;
  /// see `observe(_:)`.
  ///
  ///     for try await change in store.observe(.field("age", .greater(17)), as: Person.self) { print(change) }
  ///
  /// The type sees the members of each document, and `_id` and `_rev`. The sequence also throws the errors of the
  /// decoder.
  /// - Parameter decoder: A decoder that must not be changed afterwards.
  public func observe<Value: Decodable & Sendable>(
    _ selector: Selector, as type: Value.Type, decoder: JSONDecoder = JSONDecoder()
  ) -> Observation<Value> {
    Observation(store: self, selector: selector) { document in
      try decoder.decode(Value.self, from: Data(document.json()))
    }
  }

  /// The documents that match a selector, and the changes of this set. It ends only with an error.
  public struct Observation<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = LiveChange<Value>
    private let store: RemoteStore
    private let selector: Selector
    private let value: @Sendable (Document) throws -> Value

    /// - Parameter value: Returns what a document is returned as.
    fileprivate init(store: RemoteStore, selector: Selector, value: @escaping @Sendable (Document) throws -> Value) {
      self.store = store
      self.selector = selector
      self.value = value
    }

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(store: store, selector: selector, value: value)
    }

    /// Begins with the first call of `next`. Releasing it ends the observation.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private enum Phase {
        case initial
        case observing(ObservationFeed, LiveDocuments)
        case finished
      }

      private let store: RemoteStore
      private let selector: Selector
      private let value: @Sendable (Document) throws -> Value
      private var phase = Phase.initial
      /// The changes that were not returned, in reverse.
      private var pending: [LiveChange<Document>] = []

      fileprivate init(
        store: RemoteStore, selector: Selector, value: @escaping @Sendable (Document) throws -> Value
      ) {
        self.store = store
        self.selector = selector
        self.value = value
      }

      public mutating func next() async throws -> LiveChange<Value>? { try await next(isolation: nil) }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws -> LiveChange<Value>? {
        do {
          while true {
            if let change = pending.popLast() { return try change.map(value) }
            switch phase {
            case .initial: phase = .observing(ObservationFeed(store, selector), try LiveDocuments(selector))
            case .observing(let feed, var documents):
              phase = .finished
              pending = try await feed.nextChanges(of: &documents, isolation: actor).reversed()
              phase = .observing(feed, documents)
            case .finished: return nil
            }
          }
        } catch {
          phase = .finished
          throw error
        }
      }
    }
  }
}

/// A change of the documents that match a selector.
public enum LiveChange<Value: Sendable>: Sendable {
  /// The documents that match at the beginning, in the order of their keys' bytes.
  case initial([LiveDocument<Value>])
  /// A document began to match.
  case inserted(LiveDocument<Value>)
  /// A document that matches was written again.
  case updated(LiveDocument<Value>)
  /// The document with this key no longer matches, or no longer exists.
  case removed(key: String)

  fileprivate func map<Other>(_ value: (Value) throws -> Other) rethrows -> LiveChange<Other> {
    switch self {
    case .initial(let documents): .initial(try documents.map { try $0.map(value) })
    case .inserted(let document): .inserted(try document.map(value))
    case .updated(let document): .updated(try document.map(value))
    case .removed(let key): .removed(key: key)
    }
  }
}

/// A document that matches a selector.
public struct LiveDocument<Value: Sendable>: Sendable {
  /// The key of the document's entry.
  public let key: String
  /// The revision of the write that made the document what it is.
  public let revision: UInt64
  /// The document, or what was decoded from it.
  public let value: Value

  public init(key: String, revision: UInt64, value: Value) {
    self.key = key
    self.revision = revision
    self.value = value
  }

  fileprivate func map<Other>(_ value: (Value) throws -> Other) rethrows -> LiveDocument<Other> {
    LiveDocument<Other>(key: key, revision: revision, value: try value(self.value))
  }
}

extension LiveDocument: Equatable where Value: Equatable {}
extension LiveChange: Equatable where Value: Equatable {}
