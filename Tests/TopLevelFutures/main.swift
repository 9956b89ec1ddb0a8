// swift-format-ignore-file
import DataSourceFutures
import DataSources

// The snippets of the seeds and of the documentation that use futures, as top-level code without `await`. TopLevelTests
// runs it and checks what it prints. The code between the lines is copied from the seeds.

// Seed 004: usage.
do {
    typealias MyCustomGetDataSource = Seed004.MyCustomGetDataSource
    // ----
// Swift
let dataSource = MyCustomGetDataSource()
dataSource.get(IdQuery("myKey")).then { value in
    print("Success: \(value)")
}.fail { error in 
    print("Failure: \(error)")
}
    // ----
    Output.shared.wait(for: "Success: value of myKey")
}

// Seed 004: queries, without a use of the futures.
do {
    let (dataSource, myObject) = (RecordingDataSource(), "mine")
    // ----
// Swift
dataSource.get(IdQuery("myKey"))
dataSource.put(myObject, in:IdQuery("myKey"))
dataSource.delete(IdQuery("myKey"))
    // ----
    print("queries:", dataSource.waitForCalls(3))
}

// Seed 004: ids, without a use of the futures.
do {
    let (dataSource, myObject) = (RecordingDataSource(), "mine")
    // ----
// Swift
dataSource.get("myKey")
dataSource.put(myObject, forId:"myKey")
dataSource.delete("myKey")
    // ----
    print("ids:", dataSource.waitForCalls(3))
}

// Seed 000: search.
do {
    typealias SearchQuery = Seed000.SearchQuery
    let (itemsNetworkDataSource, itemsStorageDataSource) = (InMemoryDataSource<String>(), InMemoryDataSource<String>())
    _ = try wait(for: itemsNetworkDataSource.putAll(["far"], in: SearchQuery("lorem ipsum")))
    _ = try wait(for: itemsStorageDataSource.putAll(["near"], in: SearchQuery("lorem ipsum")))
    let found: @Sendable ([String]) -> Void = { print("search: \($0)") }
    // ----
// Searching in network
itemsNetworkDataSource.getAll(SearchQuery("lorem ipsum")).then { found($0) }
// Searching in local storage
itemsStorageDataSource.getAll(SearchQuery("lorem ipsum")).then { found($0) }
    // ----
    Output.shared.wait(for: "search: [\"far\"]")
    Output.shared.wait(for: "search: [\"near\"]")
}

// Seed 001: search, without a use of the futures.
do {
    typealias SearchQuery = Seed001.SearchQuery
    let (itemsNetworkDataSource, itemsStorageDataSource) = (RecordingDataSource(), RecordingDataSource())
    // ----
// Searching in network
itemsNetworkDataSource.getAll(SearchQuery("lorem ipsum"))
// Searching in local storage
itemsStorageDataSource.getAll(SearchQuery("lorem ipsum"))
    // ----
    print("later search:", itemsNetworkDataSource.waitForCalls(1), itemsStorageDataSource.waitForCalls(1))
}

// A value that was put is there, and errors are visible.
do {
    let source = InMemoryDataSource<String>()
    _ = try wait(for: source.put("stored", forId: 1))
    print("put:", try wait(for: source.get(1)))
    for future in [source.get(2), source.put(nil, forId: 3)] {
        do { print("the error was lost:", try wait(for: future)) } catch { print("error:", (error as! DataSourceError).kind) }
    }
}

// DataSourceFutures: overview.
struct Book: Codable, Sendable {
  let title: String
}

let books = InMemoryDataSource<Book>()
_ = try wait(for: books.put(Book(title: "Zeno's Conscience"), forId: "zeno"))
books.get("zeno").then { print($0.title) }.fail { print("\($0)") }
Output.shared.wait(for: "Zeno's Conscience")

// DataSourceFutures: futures and await.
func titleOfZeno() async throws -> String {
  let book = try await books.get("zeno")
  return book.title
}

let zeno = Future { try await books.get("zeno") }
print("await:", try wait(for: zeno).title == wait(for: Future { try await titleOfZeno() }))

// DataSourceFutures: sources with futures.
struct CallbackDataSource: FutureGetDataSource {
  func get(_ query: any Query) -> Future<String> {
    Future { resolver in
      readSomewhere { resolver.set($0) }
    }
  }

  func getAll(_ query: any Query) -> Future<[String]> {
    Future(query.notSupported(.getAll, self))
  }
}

func readSomewhere(_ done: @escaping @Sendable (String) -> Void) {
  Task.detached { done("called back") }
}

print(try wait(for: CallbackDataSource().get("a")))

// Migrating from Harmony.
do {
    typealias Item = String
    let (source, item) = (InMemoryDataSource<Item>(), "item")
source.put(item, forId: "myKey").then { stored in
  print("Success: \(stored)")
}.fail { error in
  print("Failure: \(error)")
}
    Output.shared.wait(for: "Success: item")
let repository = CacheRepository(
  main: source, cache: InMemoryDataSource<Item>(), validator: DefaultObjectValidation())
repository.get("myKey", operation: CacheSyncOperation(fallback: true)).then { found in
  print("Found: \(found)")
}
    Output.shared.wait(for: "Found: item")
func itemOfMyKey() throws -> Item {
  try source.get("myKey").result.get()
}
    print("result:", try itemOfMyKey())
}
