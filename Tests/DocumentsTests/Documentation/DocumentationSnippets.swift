import Documents
import TestSupport
import Testing

/// The Swift code of the documentation. It prints what the pages say that it prints.
@Suite struct DocumentationSnippets {
  private final class Output {
    var lines: [String] = []
  }

  private let output = Output()

  /// Records what a snippet prints.
  private func print(_ items: Any...) { output.lines.append(items.map { "\($0)" }.joined(separator: " ")) }

  /// Checks that the snippets of a page have printed what the page states.
  private func expectOutput(of page: String) throws {
    let stated = try DocumentationPage("Sources/Documents/Documents.docc/\(page).md").statedOutput
    #expect(!stated.isEmpty)
    #expect(output.lines == stated)
  }

  @Test func overview() throws {
    let people = [
      Document(#"{"name": "mike", "age": 34, "pets": ["dog"]}"#, id: "mike34"),
      Document(#"{"name": "fred", "age": 23, "pets": ["cat", "dog"]}"#, id: "fred23"),
    ]
    let withCats = try people.find(Selector(parsing: #"{"pets": "cat", "age": {"$gt": 18}}"#))
    print(withCats.compactMap(\.id))  // ["fred23"]
    // End of the snippet.
    try expectOutput(of: "Documents")
  }

  @Test func `the snippets of Getting Started run`() throws {
    let people = [
      Document(#"{"name": "mike", "age": 12, "pet": {"species": "cat"}}"#, id: "mike12"),
      Document(#"{"name": "mike", "age": 34, "pet": {"species": "dog"}}"#, id: "mike34"),
      Document(#"{"name": "fred", "age": 23, "pet": {"species": "cat"}}"#, id: "fred23"),
    ]
    // The next snippet.
    let cats = try Selector(parsing: #"{"age": {"$gt": 12}, "pet.species": "cat"}"#)
    let inSwift: Selector = .field("age", .greater(12)) && .field("pet.species", .equal("cat"))
    print(inSwift == cats)  // true
    for document in try people.find(cats) { print(try document.value()) }
    // {"_id":"fred23","name":"fred","age":23,"pet":{"species":"cat"}}
    // The next snippet.
    let query = DocumentQuery(
      sort: [.ascending("name"), .descending("age")], limit: 2, fields: ["_id", "pet.species"])
    let page = try people.find(query)
    for document in page.documents { print(try document.value()) }
    // {"_id":"fred23","pet":{"species":"cat"}}
    // {"_id":"mike34","pet":{"species":"dog"}}
    // The next snippet.
    var next = query
    next.bookmark = page.bookmark
    let rest = try people.find(next)
    print(rest.documents.compactMap(\.id), rest.bookmark == nil)  // ["mike12"] true
    // The next snippet.
    let sameQuery = try DocumentQuery(
      parsing: #"{"sort": ["name", {"age": "desc"}], "limit": 2, "fields": ["_id", "pet.species"]}"#)
    print(sameQuery == query)  // true
    // The next snippet.
    let adults = try CompiledSelector(.field("age", .greaterOrEqual(18)))
    print(people.filter { adults.matches($0) }.compactMap(\.id))  // ["mike34", "fred23"]
    // The next snippet.
    var finder = try DocumentFinder(DocumentQuery(cats, limit: 1))
    for document in people { finder.examine(document) }
    let first = finder.result().documents
    print(first.compactMap(\.id))  // ["fred23"]
    // The next snippet.
    let collection = DocumentCollection()
    try collection.put(["name": "mike", "age": 12], id: "mike12")
    try collection.put(["name": "fred", "age": 23], id: "fred23")
    let found = try collection.find(["age": ["$gt": 10]], limit: 1, fields: ["name"], sort: [["age": "desc"]])
    for document in found { print(document.id ?? "", try document.value()) }  // fred23 {"name":"fred"}
    // The next snippet.
    let index = try DocumentIndex(["name", .descending("age")], where: .field("pet.species", .equal("cat")))
    print(index.name)  // name,-age?a1be703e
    print(index)
    // {"name":"name,-age?a1be703e","fields":["name",{"age":"desc"}],"where":{"pet.species":"cat"}}
    let fromJSON = try DocumentIndex(parsing: #"{"name": "ages", "fields": ["age"]}"#)
    print(fromJSON == (try DocumentIndex(["age"], name: "ages")))  // true
    // The next snippet.
    do {
      _ = try Selector(parsing: #"{"age": {"$gth": 12}}"#)
    } catch {
      print(error.code, error.path)  // unknownOperator $.age.$gth
      print(error.reason)  // there is no operator $gth; did you mean $gt?
    }
    // End of the snippet.
    try expectOutput(of: "GettingStarted")
  }

  @Test func selectors() throws {
    let overspent = Selector.compare(.field("spent") - .field("budget"), .greater, 20)
    print(overspent)  // {"$expr":{"$gt":[{"$subtract":[{"$field":"spent"},{"$field":"budget"}]},20]}}
    // End of the snippet.
    try expectOutput(of: "Selectors")
  }

  @Test func `the snippets about JSON text run`() throws {
    var value = try JSONValue(parsing: #"{"name": "mike", "pets": ["cat"]}"#)
    value["age"] = 12
    value["pets"]?[0] = "dog"
    print(value, value["age"]?.integer == 12)  // {"name":"mike","pets":["dog"],"age":12} true
    // End of the snippet.
    try expectOutput(of: "JSONText")
  }

  @Test func aggregation() throws {
    let sales = [
      Document(#"{"city": "Paris", "tags": ["new", "big"], "price": 10}"#),
      Document(#"{"city": "Paris", "tags": ["new"], "price": 15}"#),
      Document(#"{"city": "Rome", "tags": [], "price": 2.5}"#),
      Document(#"{"price": "free"}"#),
    ]
    print(try sales.count(.field("city", .equal("Paris"))))  // 2
    print(try sales.distinct("tags"))  // ["big", "new"]
    print(try sales.distinct("city", .field("price", .less(5))))  // ["Rome"]
    // The next snippet.
    let cities = try sales.groups(by: ["city"], computing: [.count, .sum("price"), .average("price"), .max("price")])
    for group in cities { print(group.key[0] ?? "none", group.values.map { $0 ?? "none" }) }
    // "none" [1, 0, "none", "free"]
    // "Paris" [2, 25, 12.5, 15]
    // "Rome" [1, 2.5, 2.5, 2.5]
    // The next snippet.
    let tags = try sales.groups(of: .field("price", .type(.number)), by: ["tags"])
    for group in tags { print(group.key[0] ?? "none", group.values[0] ?? "none") }
    // "none" 1
    // "big" 1
    // "new" 2
    // The next snippet.
    var aggregator = try DocumentAggregator(.field("city", .exists()), computing: [.count, .min("price")])
    for sale in sales { try aggregator.add(sale) }
    for group in aggregator.result() { print(group.values.map { $0 ?? "none" }) }  // [3, 2.5]
    // The next snippet.
    let aggregation = try DocumentAggregation(parsing: #"{"by": ["city"], "compute": ["count", {"avg": "price"}]}"#)
    print(aggregation == DocumentAggregation(by: ["city"], computing: [.count, .average("price")]))  // true
    var grouper = try DocumentAggregator(.all, aggregation)
    for sale in sales { try grouper.add(sale) }
    for group in grouper.result() { print(group.json) }
    // {"by":[[]],"values":[[1],[]]}
    // {"by":[["Paris"]],"values":[[2],[12.5]]}
    // {"by":[["Rome"]],"values":[[1],[2.5]]}
    // End of the snippet.
    try expectOutput(of: "Aggregation")
  }

  @Test func updates() throws {
    let document = Array(#"{"name": "mike", "visits" : 41}"#.utf8)
    let update = try DocumentUpdate(changes: [.increment("visits"), .set("pet", to: "cat")])
    let changed = try update.apply(to: document.span)
    print(String(decoding: changed, as: UTF8.self))  // {"name": "mike", "visits" : 42,"pet":"cat"}
    print(update)  // {"$inc":{"visits":1},"$set":{"pet":"cat"}}
    let patch = try DocumentUpdate(parsing: #"{"visits": null, "address": {"city": "Paris"}}"#)
    print(String(decoding: try patch.apply(to: document.span), as: UTF8.self))
    // {"name": "mike","address":{"city":"Paris"}}
    // End of the snippet.
    try expectOutput(of: "Updates")
  }
}
