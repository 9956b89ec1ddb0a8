import Documents
import Foundation
import Testing

@Suite struct SelectorCaseTests {
  @Test func `every case matches the documents that it should`() throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("cases.json")
    let json = try JSONValue(parsing: Array(try Data(contentsOf: file)).span)
    guard case .object(let sets)? = json["sets"], case .array(let cases)? = json["cases"] else { fatalError() }
    var (count, wrong) = (0, 0)
    for test in cases where test["requires"] == nil {
      let name = test["name"]!.string!
      guard case .array(let documents)? = sets[test["set"]!.string!] else { fatalError() }
      count += 1
      do {
        let matcher = try CompiledSelector(Selector(test["selector"]!))
        let hits = documents.filter { matcher.matches($0.encoded().span) }.map { $0["_id"]!.string! }.sorted()
        if test["error"] == true {
          if test["sort"] == nil, test["skip"] == nil, test["limit"] == nil, test["fields"] == nil {
            wrong += 1
            print("NOERR", name, test["selector"]!)
          }
        } else if case .array(let expected)? = test["expect"], test["limit"] == nil, test["skip"] == nil {
          let expected = expected.map { $0.string! }.sorted()
          if hits != expected {
            wrong += 1
            print("DIFF", name, test["selector"]!, hits, expected)
          }
        }
      } catch {
        if test["error"] != true {
          wrong += 1
          print("ERR", name, error)
        }
      }
    }
    #expect(wrong == 0)
    print(count, "cases", wrong, "wrong")
  }
}
