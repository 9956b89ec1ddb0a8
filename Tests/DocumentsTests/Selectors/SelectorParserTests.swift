import Documents
import Testing

@Suite struct SelectorParserTests {
  @Test(arguments: [
    (#"{}"#, #"{}"#),
    (#"{"age": 3}"#, #"{"age":3}"#),
    (#"{"age": {"$eq": 3}}"#, #"{"age":3}"#),
    (#"{"pet": {"$eq": {"a": 1}}}"#, #"{"pet":{"$eq":{"a":1}}}"#),
    (#"{"pet": {}}"#, #"{"pet":{"$eq":{}}}"#),
    (#"{"pet": {"species": "cat", "age": {"$gt": 3}}}"#, #"{"pet.age":{"$gt":3},"pet.species":"cat"}"#),
    (
      #"{"name": "fred", "age": {"$lt": 9, "$gt": 3}}"#,
      #"{"$and":[{"age":{"$gt":3}},{"age":{"$lt":9}},{"name":"fred"}]}"#
    ),
    (#"{"age": {"$lt": 9, "$gt": 3}}"#, #"{"age":{"$gt":3,"$lt":9}}"#),
    (#"{"$and": [{"name": "fred"}, {"age": 3}]}"#, #"{"$and":[{"name":"fred"},{"age":3}]}"#),
    (#"{"$and": [{"age": 3}, {"$and": [{"name": "fred"}]}]}"#, #"{"age":3,"name":"fred"}"#),
    (#"{"$or": [{"$or": [{"a": 1}, {"b": 1}]}, {"$or": [{"c": 1}]}]}"#, #"{"$or":[{"a":1},{"b":1},{"c":1}]}"#),
    (#"{"$nor": [{"a": 1}, {"b": 1}]}"#, #"{"$nor":[{"a":1},{"b":1}]}"#),
    (#"{"$nor": [{"a": 1}]}"#, #"{"$not":{"a":1}}"#),
    (#"{"$not": {"$not": {"a": 1}}}"#, #"{"a":1}"#),
    (#"{"$not": {"a": {"$in": [1]}}}"#, #"{"a":{"$nin":[1]}}"#),
    (#"{"a": {"$not": {"$eq": 1}}}"#, #"{"a":{"$ne":1}}"#),
    (#"{"a": {"$not": {"$gt": 1}}}"#, #"{"a":{"$not":{"$gt":1}}}"#),
    (#"{"a": {"$not": {"$size": 1}}}"#, #"{"$not":{"a":{"$size":1}}}"#),
    (#"{"a": {"$ne": null}}"#, #"{"a":{"$ne":null}}"#),
    (#"{"a": {"$ne": [1]}}"#, #"{"a":{"$ne":[1]}}"#),
    (#"{"a": {"$not": {"$nor": [{"$gt": 1}]}}}"#, #"{"a":{"$not":{"$nor":[{"$gt":1}]}}}"#),
    (#"{"a": {"$elemMatch": {"$gt": 1, "$ne": 3, "b": 4}}}"#, #"{"a":{"$elemMatch":{"$gt":1,"$ne":3,"b":4}}}"#),
    (#"{"a": {"$elemMatch": {"$not": {"$gt": 1}}}}"#, #"{"a":{"$elemMatch":{"$not":{"$gt":1}}}}"#),
    (
      #"{"a": {"$or": [{"$gt": 1}, {"b": {"$exists": false}}]}}"#,
      #"{"$or":[{"a":{"$gt":1}},{"a.b":{"$exists":false}}]}"#
    ),
    (
      #"{"s": {"$in": ["a"], "$options": "dc", "$gt": 1}}"#,
      #"{"$and":[{"s":{"$gt":1}},{"s":{"$in":["a"],"$options":"cd"}}]}"#
    ),
    (#"{"s": {"$ne": "a", "$options": "c"}}"#, #"{"s":{"$ne":"a","$options":"c"}}"#),
    (#"{"s": {"$like": "**\\a\\*"}}"#, #"{"s":{"$like":"*a\\*"}}"#),
    (#"{"n": {"$mod": [2.5, 1.0]}}"#, #"{"n":{"$mod":[2,1]}}"#),
    (#"{"$text": {"$search": "old pier"}}"#, #"{"$text":"old pier"}"#),
    (#"{"$expr": {"$ne": [{"$literal": 1}, {"$literal": [1]}]}}"#, #"{"$expr":{"$ne":[1,{"$literal":[1]}]}}"#),
    (#"{"\\$a": 1, "a\\.b": 2, "c\\": 3}"#, #"{"\\$a":1,"a\\.b":2,"c\\\\":3}"#),
  ])
  func `a selector has a normal form`(_ text: String, _ normal: String) throws {
    #expect(try Selector(parsing: text).description == normal)
    #expect(try Selector(parsing: normal).description == normal)
  }

  @Test func `the order of an object's members doesn't matter`() throws {
    let one = try Selector(parsing: #"{"b": 1, "a": {"$lt": 3, "$gt": 1}, "$or": [{"c": 1}, {"d": 1}]}"#)
    let other = try Selector(parsing: #"{"$or": [{"c": 1}, {"d": 1}], "a": {"$gt": 1, "$lt": 3}, "b": 1}"#)
    #expect(one == other)
    #expect(
      try Selector(parsing: #"{"$or": [{"d": 1}, {"c": 1}]}"#) != Selector(parsing: #"{"$or": [{"c": 1}, {"d": 1}]}"#))
  }
}
