import Documents
import Foundation
import TestSupport
import Testing

@Suite struct `A JSON value` {
  @Test func `a JSON value is the same after writing and reading`() throws {
    var random = RandomJSON(SeededGenerator.announced())
    for _ in 0..<2_000 {
      let value = random.value()
      let text = value.encoded()
      let read = try JSONValue(parsing: text.span)
      #expect(read == value)
      #expect(read.encoded() == text)
      #expect(value.description == String(decoding: text, as: UTF8.self))
    }
  }

  @Test func `a JSON value is written on one line without spaces`() {
    let value: JSONValue = ["a": [1, 2.5, true, false, nil], "b": ["c": "d\n\u{1}"], "e": [], "f": [:]]
    #expect(value.description == #"{"a":[1,2.5,true,false,null],"b":{"c":"d\n\u0001"},"e":[],"f":{}}"#)
    #expect(JSONValue.double(5).description == "5.0")
    #expect(JSONValue.double(1e16).description == "1e+16")
  }

  @Test func `a JSON value can be written as Swift literals`() throws {
    let name = "mike"
    let value: JSONValue = [
      "name": "\(name)", "age": 12, "height": 1.5, "pets": ["cat", "dog"], "married": false, "phone": nil,
    ]
    #expect(
      try value
        == JSONValue(
          parsing: #"{"age":12,"height":1.5,"married":false,"name":"mike","pets":["cat","dog"],"phone":null}"#))
    #expect(["a": 1, "a": 2] as JSONValue == ["a": 2])
    #expect(["a": 1, "a": 2] as JSONObject == ["a": 2])
  }

  @Test func `only the property of a JSON value's own type returns it`() {
    let values: [JSONValue] = [nil, true, 1, 1.5, "a", [1], ["a": 1]]
    #expect(values.map(\.bool) == [nil, true, nil, nil, nil, nil, nil])
    #expect(values.map(\.integer) == [nil, nil, 1, nil, nil, nil, nil])
    #expect(values.map(\.double) == [nil, nil, 1, 1.5, nil, nil, nil])
    #expect(values.map(\.string) == [nil, nil, nil, nil, "a", nil, nil])
    #expect(values.map(\.array) == [nil, nil, nil, nil, nil, [1], nil])
    #expect(values.map(\.object) == [nil, nil, nil, nil, nil, nil, ["a": 1]])
  }

  @Test func `parts of a JSON value are read by name and index`() {
    let value: JSONValue = ["list": [1, ["deep": "yes"]], "e\u{301}": 1]
    #expect(value["list"]?[1]?["deep"] == "yes")
    #expect(value["list"]?[0] == 1)
    #expect(value["list"]?[2] == nil && value["list"]?[-1] == nil && value["other"] == nil)
    #expect(
      value["list"]?["name"] == nil && value[0] == nil && (1 as JSONValue)["a"] == nil && ("a" as JSONValue)[0] == nil)
    #expect(value["e\u{301}"] == 1)
    #expect(value["\u{E9}"] == nil)
  }

  @Test func `parts of a JSON value are changed by name and index`() {
    var value: JSONValue = ["list": [1, 2, 3], "inner": [:]]
    value["a"] = 1
    value["list"]?[0] = "one"
    value["list"]?[1] = nil
    value["inner"]?["x"] = ["y": .null]
    value["inner"]?["x"]?["y"] = 2.5
    #expect(value == ["list": ["one", 3], "inner": ["x": ["y": 2.5]], "a": 1])
    value["a"] = nil
    value["inner"] = .null
    value["list"]?[7] = nil
    value["nowhere"]?["x"] = 1
    #expect(value.description == #"{"list":["one",3],"inner":null}"#)
    var number: JSONValue = 1
    number["a"] = nil
    number[0] = nil
    #expect(number == 1)
    let copy = value
    value["list"]?[0] = 1
    #expect(copy["list"]?[0] == "one")
  }

  @Test func `changing a member or element that a JSON value can't have traps`() async {
    await #expect(processExitsWith: .failure) {
      var value: JSONValue = [1]
      value["a"] = 1
    }
    await #expect(processExitsWith: .failure) {
      var value: JSONValue = [1]
      value[1] = 1
    }
    await #expect(processExitsWith: .failure) { _ = JSONLimits(maxDepth: 513) }
  }

  @Test func `of several members with the same name, a JSON value has the last`() throws {
    let value = try JSONValue(parsing: #"{"a":1,"b":2,"\u0061":{"c":1,"c":2},"b":3}"#)
    #expect(value.description == #"{"a":{"c":2},"b":3}"#)
    let many = "{" + (0..<1_000).map { "\"k\($0 % 100)\":\($0)" }.joined(separator: ",") + "}"
    let object = try #require(try JSONValue(parsing: many).object)
    #expect(object.count == 100)
    #expect(object.allSatisfy { $0.value.integer == Int64($0.name.dropFirst()).map { $0 + 900 } })
  }

  @Test func `a JSON value keeps the order of its members, which doesn't affect equality`() throws {
    let names = (0..<50).map { "n\($0 * 7 % 50)" }
    var (object, reversed) = (JSONObject(), JSONObject())
    for name in names { object[name] = .string(name) }
    for name in names.reversed() { reversed[name] = .string(name) }
    #expect(object.map(\.name) == names)
    #expect(object == reversed && JSONValue.object(object) == .object(reversed))
    // Removing members crosses the size from which on names are hashed.
    for count in (0..<50).reversed() {
      object[names[count]] = nil
      #expect(object.map(\.name) == Array(names[..<count]))
      #expect(names[..<count].allSatisfy { object[$0]?.string == $0 } && object[names[count]] == nil)
    }
    #expect(object.isEmpty && object != reversed)
  }

  @Test func `a JSON value can be as deep as the limit on a thread with a small stack`() async throws {
    let isEqual = await withCheckedContinuation { continuation in
      // The size of the stacks of Dispatch's threads.
      let thread = Thread {
        let value = JSONValue.nested(512)
        let text = value.encoded()
        let read = try? JSONValue(parsing: text.span)
        var object = JSONValue.null
        for _ in 0..<512 { object = ["a": object] }
        let same = (try? JSONValue(parsing: object.description)) == object
        let isValid = (try? JSON.validate(text.span)) != nil
        let isFound = (try? CompiledSelector(Selector(parsing: #"{"a": {"$exists": true}}"#)))?.matches(
          Document(object.encoded()))
        continuation.resume(
          returning: same && isValid && isFound == true && read == value && read?.description == value.description)
      }
      thread.stackSize = 512 << 10
      thread.start()
    }
    #expect(isEqual)
  }
}

@Suite struct `Coding a JSON value` {
  private func coded(_ value: JSONValue) throws -> JSONValue {
    try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(value))
  }

  @Test func `a JSON value is the same after encoding and decoding`() throws {
    let value: JSONValue = [
      "null": nil, "bool": [true, false], "integers": [0, -1, .integer(.max), .integer(.min)],
      "doubles": [0.5, -1e300, 1e-7, 5.0],
      "strings": ["", "é\n\u{0}😀", "1", "true"], "empty": [[], [:]],
    ]
    #expect(try coded(value) == value)
    for scalar in [nil, true, 1, 1.5, "a"] as [JSONValue] { #expect(try coded(scalar) == scalar) }
  }

  @Test func `random JSON values are the same after encoding and decoding`() throws {
    var random = RandomJSON(SeededGenerator.announced())
    var count = 0
    while count < 300 {
      let value = random.value(depth: 3)
      guard isPreservedByFoundation(value) else { continue }
      count += 1
      let text = try JSONEncoder().encode(value)
      #expect(try JSONDecoder().decode(JSONValue.self, from: text) == value)
      let bytes = Array(text)
      #expect(try JSONValue(parsing: bytes.span) == value)
    }
  }

  /// Foundation has no infinities, reads large whole numbers as integers, and takes canonically equivalent names for the
  /// same.
  private func isPreservedByFoundation(_ value: JSONValue) -> Bool {
    switch value {
    case .double(let double): abs(double) < 0x1p53 || (double.isFinite && abs(double) > 0x1p63)
    case .array(let elements): elements.allSatisfy(isPreservedByFoundation)
    case .object(let members):
      Set(members.map(\.name)).count == members.count && members.allSatisfy { isPreservedByFoundation($0.value) }
    default: true
    }
  }

  @Test func `a JSON value and a Codable type decode each other's encoding`() throws {
    struct Person: Codable, Equatable {
      var name: String
      var age: Int
      var pets: [String]?
    }
    let person = Person(name: "mike", age: 12, pets: ["cat"])
    let value = try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(person))
    #expect(value == ["name": "mike", "age": 12, "pets": ["cat"]])
    #expect(try JSONDecoder().decode(Person.self, from: JSONEncoder().encode(value)) == person)
    #expect(try JSONDecoder().decode(Person.self, from: Data(value.encoded())) == person)
  }

  @Test func `decoding names a number outside the range of doubles`() throws {
    let error = try #require(throws: DecodingError.self) {
      try JSONDecoder().decode(JSONValue.self, from: Data("[1e400]".utf8))
    }
    guard case .dataCorrupted = error else {
      Issue.record(error)
      return
    }
    #expect(throws: EncodingError.self) { try JSONEncoder().encode(JSONValue.double(.infinity)) }
  }
}
