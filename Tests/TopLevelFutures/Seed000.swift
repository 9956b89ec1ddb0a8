// swift-format-ignore-file
import DataSourceFutures
import DataSources

/// The page on queries. The code between the lines is copied from the page, with its omissions filled in.
enum Seed000 {
  enum Declarations {
    // ----
// Swift
public protocol Query { }
    // ----
// Swift
public protocol KeyQuery : Query {
    /// The key associated to the query
    var key : String { get }
}
    // ----
  }

  // ----
// Swift
struct SearchQuery: Query {
    let text : String
    init(_ text: String) { self.text = text }
}
  // ----

  struct MyObject: Sendable, Equatable {
    let name: String
  }

  struct MyCustomQuery: Query {}
  struct AnotherQuery: Query {}

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
        return Future(MyObject(name: "custom"))
    default:
        query.fatalError(.get, self)
    }
}    
    // ----
  }

  static func search<T>(
    _ itemsNetworkDataSource: some GetDataSource<T>, _ itemsStorageDataSource: some GetDataSource<T>,
    _ found: @escaping @Sendable ([T]) -> Void
  ) {
    // ----
// Searching in network
itemsNetworkDataSource.getAll(SearchQuery("lorem ipsum")).then { found($0) }
// Searching in local storage
itemsStorageDataSource.getAll(SearchQuery("lorem ipsum")).then { found($0) }
    // ----
  }
}

private typealias SearchQuery = Seed000.SearchQuery

// ----
// Swift
extension SearchQuery: KeyQuery {
    public var key : String { return "search:\"" + text + "\""}
}
// ----
