// swift-format-ignore-file
import DataSourceFutures
import DataSources

/// The later page on queries. The code between the lines is copied from the page, with its omissions filled in.
enum Seed001 {
  enum Declarations {
    // ----
// Swift
public protocol Query { }
    // ----
// Swift
public protocol KeyQuery : Query {
    var key : String { get }
}
    // ----
  }

  // ----
// Swift
struct SearchQuery: Query {
    let text : String
}
  // ----

  struct MyObject: Sendable, Equatable {
    let name: String
  }

  struct MyCustomQuery: Query {}

  struct MyCustomDataSource: FutureGetDataSource {
    func getObjectByIdMethod(id: String) -> Future<MyObject> { Future(MyObject(name: id)) }
    func getAll(_ query: any Query) -> Future<[MyObject]> { get(query).map { [$0] } }

    // ----
// Swift
func get(_ query: Query) -> Future<MyObject> {
    switch query.self {
    case let query as IdQuery<String>:
        return getObjectByIdMethod(id: query.id)
    case is MyCustomQuery:
        // ...
        return Future(MyObject(name: "custom"))
    default:
        query.fatalError(.get, self)
    }
}
    // ----
  }

  static func search<T>(
    _ itemsNetworkDataSource: some GetDataSource<T>, _ itemsStorageDataSource: some GetDataSource<T>
  ) {
    // ----
// Searching in network
itemsNetworkDataSource.getAll(SearchQuery("lorem ipsum"))
// Searching in local storage
itemsStorageDataSource.getAll(SearchQuery("lorem ipsum"))
    // ----
  }
}

private typealias SearchQuery = Seed001.SearchQuery

extension SearchQuery {
  init(_ text: String) { self.text = text }
}

// ----
// Swift
extension SearchQuery : KeyQuery {
    public var key : String { return text }
}
// ----
