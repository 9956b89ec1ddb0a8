import Documents
import Foundation
import Testing

@Suite struct UpdateOperatorTests {
  @Test(arguments: [
    // $set
    (#"{"a": 1, "b": 2}"#, #"{"$set":{"a":"x"}}"#, #"{"a": "x", "b": 2}"#),
    (#"{"a":{"b": {"c" :1}}}"#, #"{"$set":{"a.b.c":[1, 2]}}"#, #"{"a":{"b": {"c" :[1,2]}}}"#),
    (#"{}"#, #"{"$set":{"a.b.c":1,"a.b.d":2,"a.e":3}}"#, #"{"a":{"b":{"c":1,"d":2},"e":3}}"#),
    (#"{"a":{}}"#, #"{"$set":{"a.0":1}}"#, #"{"a":{"0":1}}"#),
    (#"{}"#, #"{"$set":{"a.0.b":1}}"#, #"{"a":{"0":{"b":1}}}"#),
    (#"{"a":null}"#, #"{"$set":{"a":{"b":null}}}"#, #"{"a":{"b":null}}"#),
    (#"{"a.b":1,"a":{"b":2}}"#, #"{"$set":{"a\\.b":3}}"#, #"{"a.b":3,"a":{"b":2}}"#),
    (#"{"$a":1}"#, #"{"$set":{"\\$a":2,"b.\\$c":3}}"#, #"{"$a":2,"b":{"$c":3}}"#),
    (#"{"a\\":1}"#, #"{"$set":{"a\\":2}}"#, #"{"a\\":2}"#),
    (#"{"a":{"_id":1}}"#, #"{"$set":{"a._id":2}}"#, #"{"a":{"_id":2}}"#),
    (#"{}"#, #"{"$set":{"a":{"$inc":1}}}"#, #"{"a":{"$inc":1}}"#),
    (
      #"{"n":1}"#, #"{"$set":{"n":9223372036854775807,"m":-0.0,"e":1e400}}"#,
      #"{"n":9223372036854775807,"m":-0.0,"e":1e999}"#
    ),
    // $set in arrays
    (#"{"a":[ 1, 2 ,3 ]}"#, #"{"$set":{"a.0":"x","a.2":"z"}}"#, #"{"a":[ "x", 2 ,"z" ]}"#),
    (#"{"a":[ 1, 2 ]}"#, #"{"$set":{"a.2":3}}"#, #"{"a":[ 1, 2,3 ]}"#),
    (#"{"a":[ ]}"#, #"{"$set":{"a.0":3}}"#, #"{"a":[3 ]}"#),
    (
      #"{"a":[0]}"#, #"{"$set":{"a.2":"c","a.1.x":"b"},"$inc":{"a.3":1,"a.0":1},"$push":{"a.4":1},"$unset":["a.11"]}"#,
      #"{"a":[1,{"x":"b"},"c",1,[1]]}"#
    ),
    (#"{"a":[[1,[2]],{"b":[3]}]}"#, #"{"$set":{"a.0.1.0":4,"a.1.b.0":5}}"#, #"{"a":[[1,[4]],{"b":[5]}]}"#),
    (#"{"0":{"1":2}}"#, #"{"$set":{"0.1":3}}"#, #"{"0":{"1":3}}"#),
    // $unset
    (#"{ "a": 1, "b": 2 }"#, #"{"$unset":["a"]}"#, #"{ "b": 2 }"#),
    (#"{ "a": 1, "b": 2 }"#, #"{"$unset":{"a":"","b":0}}"#, #"{  }"#),
    (#"{"a":{"b":1,"c":2}}"#, #"{"$unset":["a.c","a.x","y.z"]}"#, #"{"a":{"b":1}}"#),
    (#"{"a":[1, 2, {"b":3}]}"#, #"{"$unset":["a.1","a.2.b","a.3","a.9.c"]}"#, #"{"a":[1, null, {}]}"#),
    (#"{"a":5,"b":null,"c":"x"}"#, #"{"$unset":["a.b","b.c","c.0"]}"#, #"{"a":5,"b":null,"c":"x"}"#),
    (#"{"a":5}"#, #"{"$unset":["b.x"],"$set":{"b.y":1}}"#, #"{"a":5,"b":{"y":1}}"#),
    // $inc
    (#"{"n": 41 }"#, #"{"$inc":{"n":1}}"#, #"{"n": 42 }"#),
    (#"{"n":41}"#, #"{"$inc":{"n":-42,"m":5,"o.p":0.5}}"#, #"{"n":-1,"m":5,"o":{"p":0.5}}"#),
    (#"{"n":1.5}"#, #"{"$inc":{"n":1}}"#, #"{"n":2.5}"#),
    (#"{"n":1}"#, #"{"$inc":{"n":1.0}}"#, #"{"n":2.0}"#),
    (#"{"n":9007199254740993}"#, #"{"$inc":{"n":2}}"#, #"{"n":9007199254740995}"#),
    (#"{"n":9007199254740992}"#, #"{"$inc":{"n":1.0}}"#, #"{"n":9007199254740993}"#),
    (#"{"n":9007199254740993}"#, #"{"$inc":{"n":1.0}}"#, #"{"n":9.007199254740994e+15}"#),
    (#"{"n":9007199254740993}"#, #"{"$inc":{"n":0.0}}"#, #"{"n":9007199254740993}"#),
    (#"{"n":-2.0}"#, #"{"$inc":{"n":-9223372036854775805}}"#, #"{"n":-9223372036854775807}"#),
    (#"{"n":9223372036854775806}"#, #"{"$inc":{"n":1}}"#, #"{"n":9223372036854775807}"#),
    (#"{"n":9223372036854775807}"#, #"{"$inc":{"n":1}}"#, #"{"n":9.223372036854776e+18}"#),
    (#"{"n":9223372036854775807}"#, #"{"$inc":{"n":9223372036854775807}}"#, #"{"n":1.8446744073709552e+19}"#),
    (#"{"n":-9223372036854775808}"#, #"{"$inc":{"n":-9223372036854775808}}"#, #"{"n":-1.8446744073709552e+19}"#),
    // Nearest to the exact sum, which the sum of the nearest doubles is not.
    (
      #"{"n":9223372036854775295}"#, #"{"$inc":{"n":9223372036854775296}}"#, #"{"n":1.844674407370955e+19}"#
    ),
    (#"{"n":-9223372036854775808}"#, #"{"$inc":{"n":-1}}"#, #"{"n":-9.223372036854776e+18}"#),
    (#"{"n":-9223372036854775808}"#, #"{"$inc":{"n":9223372036854775807}}"#, #"{"n":-1}"#),
    (#"{"n":[1,2]}"#, #"{"$inc":{"n.0":10,"n.1":10}}"#, #"{"n":[11,12]}"#),
    (#"{"n":1,"n":2}"#, #"{"$inc":{"n":10}}"#, #"{"n":12}"#),
    // $push
    (#"{"t":["a"]}"#, #"{"$push":{"t":"b"}}"#, #"{"t":["a","b"]}"#),
    (#"{"t":[ "a" , "b" ]}"#, #"{"$push":{"t":{"$each":["c",["d"]]}}}"#, #"{"t":[ "a" , "b","c",["d"] ]}"#),
    (#"{"t":[ ]}"#, #"{"$push":{"t":{"x":null}}}"#, #"{"t":[{"x":null} ]}"#),
    (#"{}"#, #"{"$push":{"t":[1],"u.v":{"$each":[]},"w":{"$each":[1,2]}}}"#, #"{"t":[[1]],"u":{"v":[]},"w":[1,2]}"#),
    (#"{"t":[1 ]}"#, #"{"$push":{"t":{"$each":[]}}}"#, #"{"t":[1 ]}"#),
    (#"{"t":[[1],[]]}"#, #"{"$push":{"t.0":2,"t.1":3,"t.2":4}}"#, #"{"t":[[1,2],[3],[4]]}"#),
    (#"{"t":[]}"#, #"{"$push":{"t":{"$each":[{"$each":[1]}]}}}"#, #"{"t":[{"$each":[1]}]}"#),
    (
      #"{"name": "mike", "visits" : 41}"#, #"{"$inc":{"visits":1},"$set":{"pet":"cat"}}"#,
      #"{"name": "mike", "visits" : 42,"pet":"cat"}"#
    ),
    // Several at once: new members are in the update's order.
    (
      #"{"x":0}"#, #"{"$push":{"d":1},"$inc":{"c":1,"x":1},"$set":{"b":1,"a":1}}"#,
      #"{"x":1,"d":[1],"c":1,"b":1,"a":1}"#
    ),
    // Of equal names the last one counts, on the way, too.
    (#"{"a":5,"a":{"b":1,"c":2,"b":3}}"#, #"{"$set":{"a.b":4}}"#, #"{"a":{"c":2,"b":4}}"#),
    (#"{"a":[1],"z":1,"a":[2,3]}"#, #"{"$set":{"a.2":4}}"#, #"{"z":1,"a":[2,3,4]}"#),
    (#"{"a":{"b":1},"a":{"c":2},"d":3,"d":4}"#, #"{"$unset":["a.b","d"]}"#, #"{"a":{"c":2}}"#),
  ])
  func `operators change fields by their paths`(document: String, update: String, result: String) throws {
    let text = try updated(document, update)
    #expect(text == result)
    try #expect(updated(document, DocumentUpdate(parsing: update).description) == text)
  }

  @Test func `updates made in Swift are those made of JSON`() throws {
    let update = try DocumentUpdate(changes: [
      .set("address.city", to: "Paris"), .increment("visits"), .push("new", to: "tags"), .unset("draft"),
      .set(#"a\.b"#, to: ["x": nil]), .increment("score", by: -0.5), .push(each: [1, 2], to: "list"),
      .push(["$x": 1], to: "objects"), .push(each: [], to: "none"),
    ])
    let json = #"""
      {"$set": {"address.city": "Paris", "a\\.b": {"x": null}}, "$inc": {"visits": 1, "score": -0.5},
       "$push": {"tags": "new", "list": {"$each": [1, 2]}, "objects": {"$each": [{"$x": 1}]}, "none": {"$each": []}},
       "$unset": ["draft"]}
      """#
    #expect(try DocumentUpdate(parsing: json) == update)
    #expect(try JSONValue(parsing: json)["$push"] == update.json["$push"])
    #expect(update.json["$unset"] == ["draft": true])
    #expect(try DocumentUpdate(update.json) == update)
    #expect(try DocumentUpdate(parsing: update.description) == update)
    #expect(try DocumentUpdate(changes: [.unset("draft")]) != update)
    #expect(try DocumentUpdate(changes: []) == DocumentUpdate([:]))
  }

  @Test func `the same changes in another order or spelling are an equal update`() throws {
    let one = try DocumentUpdate(parsing: #"{"$set":{"a":1,"b":2},"$unset":["c","d"]}"#)
    let other = try DocumentUpdate(parsing: #"{"$unset":{"\\d":0,"c":0},"$set":{"\\b":2.0,"a":1}}"#)
    #expect(one == other)
    #expect(one.description == #"{"$set":{"a":1,"b":2},"$unset":{"c":true,"d":true}}"#)
    #expect(try one != DocumentUpdate(["a": 1, "b": 2, "c": nil, "d": nil]))
  }

  @Test func `updates are coded as their JSON`() throws {
    for text in [#"{"a":{"b":null},"c":[1.5,true]}"#, #"{"$inc":{"n":1},"$push":{"t":{"$each":[1,2]}}}"#, "{}"] {
      let update = try DocumentUpdate(parsing: text)
      let data = try JSONEncoder().encode(update)
      #expect(try JSONDecoder().decode(DocumentUpdate.self, from: data) == update)
      #expect(try JSONValue(parsing: Array(data).span) == update.json)
    }
    #expect {
      try JSONDecoder().decode([DocumentUpdate].self, from: Data(#"[{"$set":{"_id":1}}]"#.utf8))
    } throws: { error in
      guard case DecodingError.dataCorrupted(let context) = error else { return false }
      return (context.underlyingError as? DocumentUpdateError)?.code == .metadata && context.codingPath.count == 1
    }
  }
}
