import Documents
import Testing

@testable import larder

@Suite struct `An explanation on a terminal` {
  private func text(_ json: String, store: String = "people", keys: Int = 12, documents: Int = 3) throws -> [String] {
    let statistics = DocumentStatistics(
      examinedDocumentCount: documents, examinedKeyCount: keys, returnedDocumentCount: 2,
      duration: .microseconds(1_500))
    return ExplanationText(try JSONValue(parsing: json), statistics, store: store).text.split(separator: "\n")
      .map(String.init)
  }

  @Test func `an explanation shows the plan, the rejected ones and how much was examined`() throws {
    let lines = try text(
      """
      {"selector": {"age": {"$gt": 12}, "name": "mike"}, "plan": {"kind": "index", "index": "by-name-age",
        "ranges": [{"name": {"$eq": "mike"}, "age": {"$gt": 12, "$lte": 20}}], "ordered": true, "covered": true, "reversed": true,
        "estimatedKeys": 1200},
       "candidates": [{"index": "by-age", "reason": "it has more keys in its ranges", "estimatedKeys": 1},
        {"index": "by-pet", "reason": "the selector doesn't use its first field pet"}]}
      """)
    #expect(
      lines == [
        #"Selector    {"age":{"$gt":12},"name":"mike"}"#, "Plan        index by-name-age, backward (about 1,200 keys)",
        #"              name = "mike", age > 12 and <= 20"#,
        "              in the order of the result, without sorting",
        "              without evaluating documents: the keys are enough",
        "Examined    12 keys and 3 documents in 1.5 ms",
        "Not used    by-age (about 1 key): it has more keys in its ranges",
        "            by-pet: the selector doesn't use its first field pet",
      ])
  }

  @Test func `an explanation shows a plan that was abandoned`() throws {
    let lines = try text(
      """
      {"selector": {}, "plan": {"kind": "index", "index": "a", "estimatedKeys": 10, "insteadOf": {"kind": "scan"}},
       "candidates": []}
      """)
    #expect(
      lines[1...2] == [
        "Plan        index a (about 10 keys)",
        "              instead of all documents of the store, where matches came later than expected",
      ])
  }

  @Test func `an explanation shows the parts of a plan, and only the first ranges`() throws {
    let ranges = (0..<20).map { #"{"a": {"$eq": \#($0)}}"# }.joined(separator: ",")
    let lines = try text(
      """
      {"selector": {}, "plan": {"kind": "union", "parts": [{"kind": "index", "index": "a", "ranges": [\(ranges)]},
        {"kind": "ids", "rangeCount": 30, "ranges": [{"_id": {"$beginsWith": "x"}}, {"a": {}, "b": {"$exists": false}, "c": "x"}]}]}}
      """, keys: 1, documents: 1)
    #expect(
      Array(lines[1...3]) == ["Plan        the documents of any of", "              index a", "                a = 0"])
    #expect(lines.contains("                … and 12 more ranges"))
    #expect(
      lines.suffix(5) == [
        "              the keys of the store", #"                _id begins with "x""#,
        "                a any value, b is missing, c x", "                … and 28 more ranges",
        "Examined    1 key and 1 document in 1.5 ms",
      ])
  }

  @Test func `an explanation ends with the command that creates a helpful index`() throws {
    func command(_ fields: String, store: String = "people", existing: String = "") throws -> String? {
      let explanation = try text(
        #"{"plan": {"kind": "scan"}, "candidates": [\#(existing)], "suggestion": {"fields": \#(fields)}}"#,
        store: store)
      return explanation.last
    }
    #expect(
      try command(#"["pet.species", {"age": "desc"}]"#)
        == "Would help  larder index create people by-pet-species-age pet.species -age")
    #expect(
      try command(#"["age"]"#, store: "a b", existing: #"{"index": "by-age", "reason": "x"}"#)
        == "Would help  larder index create 'a b' by-age-2 age")
    #expect(
      try command(#"["it's $5;", "\\-x"]"#) == #"Would help  larder index create people by-its5-x 'it'\''s $5;' '\-x'"#)
    #expect(try command(#"[{"年": "desc"}]"#) == "Would help  larder index create people by -年")
  }

  @Test(arguments: ["{}", "[]", #"{"plan":7,"candidates":{"a":1},"suggestion":[]}"#, #"{"suggestion":{"fields":[]}}"#])
  func `an explanation of an unexpected form still says how much was examined`(json: String) throws {
    #expect(try text(json).contains("Examined    12 keys and 3 documents in 1.5 ms"))
  }
}
