// swift-format-ignore-file
import DataSourceFutures
import DataSources

/// The page on data sources. The code between the lines is copied from the page.
enum Seed004 {
  // ----
public protocol DataSource {
    associatedtype T
}
  // ----
// Swift
public protocol GetDataSource : DataSource {
    func get(_ query: Query) -> Future<T>
    func getAll(_ query: Query) -> Future<[T]>
}
  // ----
// Swift
public protocol PutDataSource : DataSource {
    func put(_ value: T?, in query: Query) -> Future<T>
    func putAll(_ array: [T], in query: Query) -> Future<[T]>
}
  // ----
// Swift
public protocol DeleteDataSource : DataSource {
    func delete(_ query: Query) -> Future<Void>
    func deleteAll(_ query: Query) -> Future<Void>
}
  // ----

  struct MyCustomGetDataSource: DataSources.GetDataSource {
    func get(_ query: any Query) async throws -> String {
      guard let query = query as? IdQuery<String>, query.id == "myKey" else { throw query.notSupported(.get, self) }
      return "value of \(query.id)"
    }

    func getAll(_ query: any Query) async throws -> [String] { throw query.notSupported(.getAll, self) }
  }

  static func usage(_ print: @escaping @Sendable (String) -> Void) {
    // ----
// Swift
let dataSource = MyCustomGetDataSource()
dataSource.get(IdQuery("myKey")).then { value in
    print("Success: \(value)")
}.fail { error in 
    print("Failure: \(error)")
}
    // ----
  }

  static func queries(
    _ dataSource: some DataSources.GetDataSource<String> & DataSources.PutDataSource<String>
      & DataSources.DeleteDataSource<String>,
    _ myObject: String
  ) {
    // ----
// Swift
dataSource.get(IdQuery("myKey"))
dataSource.put(myObject, in:IdQuery("myKey"))
dataSource.delete(IdQuery("myKey"))
    // ----
  }

  static func ids(
    _ dataSource: some DataSources.GetDataSource<String> & DataSources.PutDataSource<String>
      & DataSources.DeleteDataSource<String>,
    _ myObject: String
  ) {
    // ----
// Swift
dataSource.get("myKey")
dataSource.put(myObject, forId:"myKey")
dataSource.delete("myKey")
    // ----
  }
}

// Sources conform to the protocols of the page, in addition to the async ones.
extension InMemoryDataSource: Seed004.GetDataSource, Seed004.PutDataSource, Seed004.DeleteDataSource {}
extension AnyDataSource: Seed004.GetDataSource, Seed004.PutDataSource, Seed004.DeleteDataSource {}
